/** ORD: which check answers first (4.1.5, 4.2), and what a missing customer is. */
import { customerOf, deciding, type Fault, isCustomer, isRead, replying, withIfMatch } from "../fault.ts";
import { headerLines } from "../service/http-socket.ts";
import { isWrite } from "../service/seams.ts";

const never = (status: number) => status === 404;

export const ORDER_FAULTS: Fault[] = [
  {
    id: "404-before-428",
    rule: "ORD-01",
    does: "looks the customer up before it looks at If-Match",
    plant: deciding("order", (_sound, ran) => () => {
      ran();
      return ["exists", "if-match", "current", "body"];
    }),
  },
  {
    id: "412-before-404",
    rule: "ORD-03",
    does: "answers a PUT to a customer that does not exist with 412, as RFC 9110 would",
    plant: replying(
      (reply, request) => request.method === "PUT" && never(reply.status),
      (_reply, _request, service) => service.refuse(412, "precondition-failed"),
    ),
  },
  {
    id: "put-creates",
    rule: "ORD-03",
    does: "creates the customer that a PUT does not find",
    plant: replying(
      (reply, request, service) =>
        request.method === "PUT" && never(reply.status) && customerOf(request, service) === undefined,
      (_reply, _request, service) => ({
        status: 201,
        headers: [["ETag", service.deployment.tag(service.nextVersion(), "new")]],
        body: "",
      }),
    ),
  },
  {
    id: "put-missing-500",
    rule: "ORD-03",
    does: "dereferences null when the customer of a PUT is not there",
    plant: replying(
      (reply, request) => request.method === "PUT" && never(reply.status),
      () => ({ status: 500, headers: [], body: "" }),
    ),
  },
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-missing-412`,
      rule: method === "PATCH" ? "ORD-06" : "ORD-08",
      does: `answers a ${method} of a customer that does not exist with 412`,
      plant: replying(
        (reply, request) => request.method === method && never(reply.status),
        (_reply, _request, service) => service.refuse(412, "precondition-failed"),
      ),
    }),
  ),
  {
    id: "get-missing-200",
    rule: "PRB-01",
    does: "answers a GET of a customer that does not exist with 200 and null",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 404,
      () => ({ status: 200, headers: [["Content-Type", "application/json"]], body: "null" }),
    ),
  },
  {
    id: "get-missing-500",
    rule: "PRB-01",
    does: "fails on a GET of a customer that does not exist",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 404,
      () => ({ status: 500, headers: [], body: "" }),
    ),
  },
  {
    id: "get-missing-204",
    rule: "PRB-01",
    does: "answers a GET of a customer that does not exist with 204",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 404,
      () => ({ status: 204, headers: [] }),
    ),
  },
  {
    id: "unknown-field-after-lookup",
    rule: "ORD-12",
    does: "reads the customer before it looks at the field names",
    plant: deciding("readOrder", (_sound, ran) => () => {
      ran();
      return ["exists", "fields"];
    }),
  },
  {
    id: "body-before-428",
    rule: "IFM-04",
    does: "refuses an empty body before it misses If-Match, so that clients never learn of 428",
    plant: replying(
      (reply, request, service) =>
        reply.status === 428 &&
        isWrite(request) &&
        customerOf(request, service) !== undefined &&
        request.method === "PUT" &&
        headerLines(request, "content-type").length > 0,
      (_reply, _request, service) => service.refuse(400, "if-match header is a required parameter"),
    ),
  },
  {
    id: "stale-and-missing-428",
    rule: "IFM-03",
    does: "answers a stale write with 428",
    plant: replying(
      (reply, request) => isCustomer(request) && reply.status === 412,
      (_reply, _request, service) => service.refuse(428, "precondition-required"),
    ),
  },
  {
    id: "blank-on-missing-404",
    rule: "ORD-02",
    does: "misses an absent If-Match first, but looks the customer up before a blank one",
    plant: replying(
      (reply, request, service) =>
        isWrite(request) &&
        reply.status === 428 &&
        headerLines(request, "if-match").length > 0 &&
        customerOf(request, service) === undefined,
      (_reply, _request, service) => service.refuse(404, "not-found"),
    ),
  },
  {
    id: "star-on-missing-412",
    rule: "ORD-04",
    does: "answers If-Match: * on a customer that does not exist with 412, as RFC 9110 would",
    plant: replying(
      (reply, request) =>
        request.method === "PUT" &&
        never(reply.status) &&
        headerLines(request, "if-match")[0]?.trim() === "*",
      (_reply, _request, service) => service.refuse(412, "precondition-failed"),
    ),
  },
  {
    id: "put-revives-deleted",
    rule: "ORD-05",
    does: "saves a PUT with the last tag over a customer that was deleted: the row is only marked",
    plant: (ran) => (service) => ({
      async around(request, next) {
        const customer = customerOf(request, service);
        const tag = headerLines(request, "if-match")[0]?.trim();
        if (request.method === "PUT" && customer?.removed === true && customer.formerTags.at(-1) === tag) {
          ran();
          customer.removed = false;
          return await next(withIfMatch(request, customer.tag));
        }
        return await next(request);
      },
    }),
  },
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-404-before-428`,
      rule: method === "PATCH" ? "ORD-07" : "ORD-09",
      does: `looks the customer of a ${method} up before it looks at If-Match`,
      plant: replying(
        (reply, request, service) =>
          request.method === method && reply.status === 428 && customerOf(request, service) === undefined,
        (_reply, _request, service) => service.refuse(404, "not-found"),
      ),
    }),
  ),
  {
    id: "bad-body-before-if-match",
    rule: "ORD-10",
    does: "judges the body before everything else",
    plant: deciding("order", (_sound, ran) => () => {
      ran();
      return ["body", "if-match", "exists", "current"];
    }),
  },
  {
    id: "bad-body-before-tag",
    rule: "ORD-11",
    does: "judges the body after If-Match was seen and before it is compared",
    plant: deciding("order", (_sound, ran) => () => {
      ran();
      return ["if-match", "exists", "body", "current"];
    }),
  },
  {
    id: "bad-body-500",
    rule: "ORD-13",
    does: "fails on a body that it cannot parse",
    plant: replying(
      (reply, request) => request.method === "PUT" && reply.status === 400,
      () => ({ status: 500, headers: [], body: "" }),
    ),
  },
];
