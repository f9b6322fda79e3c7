/** What an accepted write does (1.3, 2.1, 2.3, 4.2, 4.3). */
import { deciding, type Fault, type Plant } from "../fault.ts";
import { headerLines, setHeader } from "../service/http-socket.ts";
import type { Change } from "../service/seams.ts";
import {
  type Act,
  as,
  empty,
  every,
  isThere,
  later,
  newTag,
  on,
  overwriting,
  refused,
  spoiling,
  type When,
  withCurrentTag,
  write,
} from "../turn.ts";

/** Stores something else than what one method carries. */
export const storing = (method: string | undefined, wrong: (change: Change) => Change): Plant =>
  deciding("store", (sound, ran) => (customer, change, request) => {
    const stored = method === undefined || request.method === method ? wrong(change) : change;
    if (!Bun.deepEquals(stored, change)) ran();
    sound(customer, stored, request);
  });

const inCapitals: When = ({ request }) => /[A-F]/.test(request.path.slice(-36));
const asJson: When = ({ request }) =>
  headerLines(request, "content-type").join().trim() === "application/json";
const isPut: When = ({ request }) => request.method === "PUT";
const namesAnotherId: When = ({ body, before }) =>
  typeof body["Id"] === "string" && body["Id"] !== before?.id;

/** A PATCH whose members go where they should not. */
const patching = (id: string, rule: string, does: string, when: When, act: Act): Fault => ({
  id,
  rule,
  does,
  plant: on(({ request }) => request.method === "PATCH", withCurrentTag, when).answers(async (turn) => {
    await act(turn);
    return { status: 204, headers: [["ETag", turn.customer?.tag ?? ""]] };
  }),
});

export const WRITE_FAULTS: Fault[] = [
  {
    id: "applied-then-500",
    rule: "IFM-01",
    does: "applies a PUT, then fails on the way out",
    plant: on(write("PUT")).answers(empty(500)),
  },
  {
    id: "patch-as-json-replaces",
    rule: "IFM-30",
    does: "takes a PATCH of application/json for the whole customer, and empties the email that it does not name",
    plant: on(write("PATCH"), isThere, asJson, ({ body }) => !("Email" in body)).answers(
      spoiling(() => ({ email: "" })),
    ),
  },
  {
    id: "put-changes-nothing",
    rule: "IFM-01",
    does: "answers a PUT with 204 and a new tag but stores nothing",
    plant: storing("PUT", () => ({})),
  },
  {
    id: "put-loses-email",
    rule: "IFM-01",
    does: "stores the name of a PUT and forgets the email",
    plant: storing("PUT", ({ name }) => (name === undefined ? {} : { name })),
  },
  {
    id: "patch-replaces",
    rule: "IFM-30",
    does: "takes a PATCH for a PUT: members that are not in it are emptied",
    plant: storing("PATCH", (change) => ({ name: "", email: "", ...change })),
  },
  {
    id: "delete-does-nothing",
    rule: "IFM-40",
    does: "answers DELETE with 204 and leaves customer and tag as they are",
    plant: deciding("commit", (sound, ran) => async (attempt) => {
      if (attempt.request.method !== "DELETE") return await sound(attempt);
      await attempt.bodyRead();
      const refusal = attempt.decide();
      if (refusal === undefined) ran();
      return refusal ?? { status: 204, headers: [] };
    }),
  },
  {
    id: "put-changes-id",
    rule: "FLD-15",
    does: "binds the whole body to the row: an Id in a PUT changes the id",
    // The key of the map stays: the row is found by its address and shows another id.
    plant: on(
      (turn) => /PUT|PATCH/.test(turn.request.method) && turn.reply.status < 300 && "Id" in turn.body,
    ).answers(spoiling((_customer, { body }) => ({ id: String(body["Id"]) }))),
  },
  {
    id: "put-200-without-body",
    rule: "IFM-02",
    does: "answers a PUT with 200 and nothing",
    plant: on(write("PUT", 204)).answers(as(200, "")),
  },
  {
    id: "patch-changes-nothing",
    rule: "IFM-30",
    does: "answers a PATCH with 204 and a new tag, and stores nothing: the mapper skips what it does not know",
    plant: on(write("PATCH", 204)).answers(
      spoiling((customer, { before }) => {
        const { name, email, status } = before ?? customer;
        return { name, email, status };
      }),
    ),
  },
  {
    id: "validates-after-assigning",
    rule: "FLD-16",
    does: "assigns a PUT to its entity, then refuses it; the session writes the entity all the same",
    plant: on(write("PUT", 400), withCurrentTag).answers(
      overwriting(({ body }) => ({
        name: String(body["Name"] ?? ""),
        email: String(body["Email"] ?? ""),
      })),
    ),
  },
  {
    id: "body-id-decides-the-row",
    rule: "FLD-15",
    does: "saves a PUT under the id of its body: a second customer with that id comes into being",
    plant: on(write("PUT"), namesAnotherId).answers(({ reply, body, service, customer }) => {
      const id = String(body["Id"]).toLowerCase();
      if (customer !== undefined) service.customers.set(id, { ...customer, id });
      return reply;
    }),
  },
  {
    id: "redirects-to-the-id-of-the-body",
    rule: "FLD-15",
    does: "redirects a PUT that names another id to that id",
    plant: on(isPut, namesAnotherId).answers(({ body }) => ({
      status: 303,
      headers: [["Location", `/customers/${String(body["Id"])}`]],
      body: "",
    })),
  },
  {
    id: "name-as-number-503",
    rule: "FLD-18",
    does: "hands a name that is no string to a service that then falls over",
    plant: on(isPut, ({ body }) => typeof body["Name"] === "number").answers(refused(503)),
  },
  patching(
    "patch-moves-id",
    "FLD-15",
    "binds the Id of a PATCH to the row",
    ({ body }) => "Id" in body,
    overwriting(({ body }) => ({ id: String(body["Id"]) })),
  ),
  patching(
    "patch-stores-any-type",
    "FLD-18",
    "writes what a PATCH names into a document store without a schema: a number stays one",
    ({ body }) => "Name" in body && typeof body["Name"] !== "string",
    ({ body, customer, reply }) => {
      Object.assign(customer ?? {}, { name: body["Name"] });
      return reply;
    },
  ),
  patching(
    "patch-sets-token",
    "FLD-19",
    "binds RowVersion in a PATCH to the column that makes the tag",
    ({ body }) => "RowVersion" in body,
    spoiling((_customer, { body }) => ({ tag: `"${String(body["RowVersion"]).replaceAll('"', "")}"` })),
  ),
  ...(["name", "email"] as const).map(
    (field): Fault => ({
      id: `some-puts-lose-${field}`,
      comesAndGoes: true,
      rule: "ETG-06",
      does: `acknowledges every PUT with a new tag, and loses the ${field} of every fifth in a buffer`,
      plant: (ran) =>
        on(write("PUT"), isThere, every(5)).answers(
          spoiling((customer, { before }) => ({ [field]: (before ?? customer)[field] })),
        )(ran),
    }),
  ),
  {
    id: "put-of-email-alone-lost",
    rule: "IFM-01",
    does: "watches the name for changes: a PUT that changes the email alone gets a new tag and stores nothing",
    plant: deciding("store", (sound, ran) => (customer, change, request) => {
      const emailAlone = change.name === customer.name && change.email !== customer.email;
      if (request.method !== "PUT" || !emailAlone) return sound(customer, change, request);
      ran();
    }),
  },
  {
    id: "patch-of-both-loses-email",
    rule: "IFM-30",
    does: "returns from its PATCH handler after the first column",
    plant: storing("PATCH", ({ name, ...rest }) => (name === undefined ? rest : { name })),
  },
  {
    id: "patch-resets-status",
    rule: "FLD-21",
    does: "fills what a PATCH does not name from the defaults of the model: the status is that of a new customer",
    plant: storing("PATCH", (change) => ({ status: "Pending", ...change })),
  },
  {
    id: "put-hits-customers-of-the-same-email",
    rule: "ENV-06",
    does: "updates by email, which is not unique, and not by id",
    plant: on(write("PUT"), isThere).answers(({ service, customer, reply }) => {
      for (const other of service.customers.values())
        if (other.id !== customer?.id && other.email === customer?.email) other.name = customer.name;
      return reply;
    }),
  },
  {
    id: "put-hits-customers-of-the-same-name",
    rule: "ENV-06",
    does: "updates the email by name, which is not unique, and not by id",
    plant: on(write("PUT"), isThere).answers(({ service, customer, reply }) => {
      for (const other of service.customers.values())
        if (other.id !== customer?.id && other.name === customer?.name) other.email = customer.email;
      return reply;
    }),
  },
  {
    id: "taken-email-left-out",
    rule: "ETG-17",
    does: "swallows the error of a unique index on the email: such a PUT is answered 204, and the email stays",
    plant: on(
      write("PUT"),
      ({ service, customer }) =>
        customer !== undefined &&
        [...service.customers.values()].some(
          ({ id, email }) => id !== customer.id && email === customer.email,
        ),
    ).answers(spoiling((_customer, { before }) => ({ email: before?.email ?? "" }))),
  },
  {
    id: "patch-bumps-every-version",
    rule: "ENV-06",
    does: "bumps the version of the whole table on a PATCH: its statement has no WHERE",
    plant: on(write("PATCH"), isThere).answers((turn) => {
      for (const other of turn.service.customers.values())
        if (other.id !== turn.customer?.id) other.tag = newTag(other, turn);
      return turn.reply;
    }),
  },
  {
    id: "acknowledged-put-falls-back",
    rule: "ENV-07",
    does: "writes through a cache whose store refuses one PUT in five: a moment later the former email is back",
    plant: on(write("PUT"), isThere, every(5)).answers(({ before, customer, reply }) => {
      const tag = customer?.tag;
      setTimeout(() => {
        if (customer !== undefined && customer.tag === tag) customer.email = before?.email ?? "";
      }, 400);
      return reply;
    }),
  },
  {
    id: "deleted-customer-comes-back",
    rule: "ENV-07",
    does: "deletes in a cache, and a replication brings the customer back a moment later",
    plant: on(write("DELETE"), isThere).answers(({ customer, reply }) => {
      setTimeout(() => Object.assign(customer ?? {}, { removed: false }), 1500);
      return reply;
    }),
  },
  ...(
    [
      ["PUT", 412],
      ["PATCH", 428],
    ] as const
  ).map(
    ([method, status]): Fault => ({
      id: `queue-applies-${method.toLowerCase()}-answered-${status}`,
      rule: "ENV-08",
      mode: "full",
      comesAndGoes: true,
      does: `checks a copy of the request and queues another: a ${method} answered ${status} is applied a second later`,
      plant: on(write(method, status), isThere).answers(
        later(
          1000,
          overwriting(({ body, service }) => ({ name: String(body[service.deployment.members.name]) })),
        ),
      ),
    }),
  ),
  {
    id: "queue-deletes-what-was-refused",
    rule: "ENV-08",
    mode: "full",
    comesAndGoes: true,
    does: "deletes from the search index first, and a job removes a second later what is not in it: also after a DELETE answered 412",
    plant: on(write("DELETE", 412), isThere).answers(
      later(
        1000,
        spoiling(() => ({ removed: true })),
      ),
    ),
  },
  {
    id: "put-in-capitals-keeps-the-tag",
    rule: "ETG-17",
    does: "has a second route without the version, which a PUT with the id in capitals takes",
    plant: on(write("PUT"), isThere, inCapitals).answers((turn) => {
      const tag = turn.before?.tag ?? "";
      Object.assign(turn.customer ?? {}, { tag });
      return setHeader(turn.reply, "ETag", tag);
    }),
  },
  {
    id: "patch-in-capitals-not-stored",
    rule: "ETG-18",
    does: "stores by the id as it is spelled: of a PATCH with the id in capitals no row is changed",
    plant: on(write("PATCH"), isThere, inCapitals).answers(
      spoiling((_customer, { before }) => ({ name: before?.name ?? "", email: before?.email ?? "" })),
    ),
  },
  {
    id: "delete-in-capitals-does-nothing",
    rule: "IFM-40",
    does: "deletes by the id as it is spelled: of a DELETE with the id in capitals no row is gone",
    plant: on(write("DELETE"), isThere, inCapitals).answers(({ reply, customer, before }) => {
      Object.assign(customer ?? {}, before);
      return reply;
    }),
  },
];
