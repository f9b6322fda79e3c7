/** ORD: which check answers first (4.1.5, 4.2), and what a missing customer is. */
import { type Fault, instead, withIfMatch } from "../../fault.ts";
import { headerLines } from "../../service/http-socket.ts";
import { type Act, empty, isThere, neverThere, on, read, refused, type When, write } from "../../turn.ts";

const putMissing = write("PUT", 404);
const withHeader =
  (name: string): When =>
  ({ request }) =>
    headerLines(request, name).length > 0;

/** A customer comes into being under the address of the request. */
const created: Act = ({ request, reply, service }) => {
  const customer = service.add("main", { name: "Created", email: "created@example.org" });
  service.customers.delete(customer.id);
  customer.id = request.path.slice(-36).toLowerCase();
  service.customers.set(customer.id, customer);
  return reply;
};

export const ORDER_FAULTS: Fault[] = [
  {
    id: "404-before-428",
    rule: "ORD-01",
    does: "looks the customer up before it looks at If-Match",
    plant: instead("order", () => ["exists", "if-match", "current", "body"]),
  },
  {
    id: "412-before-404",
    rule: "ORD-03",
    does: "answers a PUT to a customer that does not exist with 412, as RFC 9110 would",
    plant: on(putMissing).answers(refused(412)),
  },
  {
    id: "weak-tag-412-before-404",
    rule: "ORD-03",
    does: "answers a tag that is no strong one with 412 before it looks the customer up",
    plant: on(putMissing, ({ sent }) => sent?.startsWith("W/") === true).answers(refused(412)),
  },
  {
    id: "put-creates",
    rule: "ORD-03",
    does: "creates the customer that a PUT does not find",
    plant: on(putMissing, neverThere).answers(({ service }) => ({
      status: 201,
      headers: [["ETag", service.deployment.tag(service.nextVersion(), "new")]],
      body: "",
    })),
  },
  {
    id: "put-missing-500",
    rule: "ORD-03",
    does: "dereferences null when the customer of a PUT is not there",
    plant: on(putMissing).answers(empty(500)),
  },
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-missing-412`,
      rule: method === "PATCH" ? "ORD-06" : "ORD-08",
      does: `answers a ${method} of a customer that does not exist with 412`,
      plant: on(write(method, 404)).answers(refused(412)),
    }),
  ),
  {
    id: "get-missing-200",
    rule: "PRB-01",
    does: "answers a GET of a customer that does not exist with 200 and null",
    plant: on(read(404)).answers(() => ({
      status: 200,
      headers: [["Content-Type", "application/json"]],
      body: "null",
    })),
  },
  {
    id: "get-missing-500",
    rule: "PRB-01",
    does: "fails on a GET of a customer that does not exist",
    plant: on(read(404)).answers(empty(500)),
  },
  {
    id: "get-missing-204",
    rule: "PRB-01",
    does: "answers a GET of a customer that does not exist with 204",
    plant: on(read(404)).answers(empty(204)),
  },
  {
    id: "unknown-field-after-lookup",
    rule: "ORD-12",
    does: "reads the customer before it looks at the field names",
    plant: instead("readOrder", () => ["exists", "fields"]),
  },
  {
    id: "body-before-428",
    rule: "IFM-04",
    does: "refuses an empty body before it misses If-Match, so that clients never learn of 428",
    plant: on(write("PUT", 428), isThere, withHeader("content-type")).answers(refused(400)),
  },
  {
    id: "stale-and-missing-428",
    rule: "IFM-03",
    does: "answers a stale write with 428",
    plant: on(write(undefined, 412)).answers(refused(428)),
  },
  {
    id: "blank-on-missing-404",
    rule: "ORD-02",
    does: "misses an absent If-Match first, but looks the customer up before a blank one",
    plant: on(write(undefined, 428), withHeader("if-match"), neverThere).answers(refused(404)),
  },
  {
    id: "star-on-missing-412",
    rule: "ORD-04",
    does: "answers If-Match: * on a customer that does not exist with 412, as RFC 9110 would",
    plant: on(putMissing, ({ sent }) => sent === "*").answers(refused(412)),
  },
  {
    id: "put-revives-deleted",
    rule: "ORD-05",
    does: "saves a PUT with the last tag over a customer that was deleted: the row is only marked",
    plant: on(
      putMissing,
      ({ before, sent }) => before?.removed === true && before.formerTags.at(-1) === sent,
    ).answers(({ customer, request, send }) => {
      Object.assign(customer ?? {}, { removed: false });
      return send(withIfMatch(request, customer?.tag));
    }),
  },
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-404-before-428`,
      rule: method === "PATCH" ? "ORD-07" : "ORD-09",
      does: `looks the customer of a ${method} up before it looks at If-Match`,
      plant: on(write(method, 428), neverThere).answers(refused(404)),
    }),
  ),
  {
    id: "bad-body-before-if-match",
    rule: "ORD-10",
    does: "judges the body before everything else",
    plant: instead("order", () => ["body", "if-match", "exists", "current"]),
  },
  {
    id: "bad-body-before-tag",
    rule: "ORD-11",
    does: "judges the body after If-Match was seen and before it is compared",
    plant: instead("order", () => ["if-match", "exists", "body", "current"]),
  },
  {
    id: "bad-body-500",
    rule: "ORD-13",
    does: "fails on a body that it cannot parse",
    plant: on(write("PUT", 400)).answers(empty(500)),
  },
  ...(["PUT", "PATCH"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-upserts-then-refuses`,
      rule: method === "PUT" ? "ORD-03" : "ORD-06",
      does: `inserts the row of a ${method} where there is none, then refuses, and forgets to roll back`,
      plant: on(({ request, reply }) => request.method === method && reply.status >= 400, neverThere).answers(
        created,
      ),
    }),
  ),
  {
    id: "put-to-deleted-412",
    rule: "ORD-05",
    does: "finds the row of a deleted customer, and compares before it sees that it is deleted",
    plant: on(putMissing, ({ before }) => before?.removed === true).answers(refused(412)),
  },
  {
    id: "unknown-field-of-missing-404",
    rule: "ORD-12",
    does: "looks names up in the row, so that a customer that is not there is 404 first",
    plant: on(read(400), neverThere).answers(refused(404)),
  },
];
