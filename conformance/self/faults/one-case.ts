/** What goes wrong in one case only: one kind of caller, of missing customer, of read, of body. */
import { customerOf, deciding, type Fault, isRead, withIfMatch } from "../fault.ts";
import { getHeader, headerLines, type Reply, setHeader } from "../service/http-socket.ts";
import { isWrite } from "../service/seams.ts";
import {
  type Act,
  all,
  answered,
  as,
  by,
  every,
  isThere,
  neverThere,
  newTag,
  object,
  overwriting,
  projectedRead,
  read,
  refused,
  replying,
  showing,
  spoiling,
  type Turn,
  type When,
  weakened,
  wholeRead,
  withCurrentTag,
  write,
} from "../turn.ts";
import { damaging, withoutAccents } from "./chains-and-bodies.ts";
import { privileged } from "./tenants.ts";

type Row = Omit<Fault, "plant"> & { readonly when: When; readonly act: Act };

const isPut: When = ({ request }) => request.method === "PUT";
const isForeignWrite: When = ({ request, caller }) => isWrite(request) && caller === "other";

/** A customer comes into being under the address of the request. */
function created({ request, reply, service }: Turn): Reply {
  const customer = service.add("a", { name: "Created", email: "created@example.org" });
  service.customers.delete(customer.id);
  customer.id = request.path.slice(-36).toLowerCase();
  service.customers.set(customer.id, customer);
  return reply;
}

/** Adds a member that shows the name or the email. */
const revealing = (member: string, field: "name" | "email"): Act =>
  showing((body, { before }) => ({ ...body, [member]: `for ${before?.[field]}` }));
/** A refusal that names the customer. */
const namingRefusal =
  (status: number): Act =>
  (turn) =>
    revealing("detail", "name")({ ...turn, reply: turn.service.refuse(status, "refused") });

const asOwner: Act = ({ request, service, send }) => send(privileged(request, service));

const MISSING: Row[] = [
  ...(["PUT", "PATCH"] as const).map(
    (method): Row => ({
      id: `${method.toLowerCase()}-upserts-then-refuses`,
      rule: method === "PUT" ? "ORD-03" : "ORD-06",
      does: `inserts the row of a ${method} where there is none, then refuses, and forgets to roll back`,
      when: (turn) => turn.request.method === method && neverThere(turn) && turn.reply.status >= 400,
      act: created,
    }),
  ),
  {
    id: "put-to-deleted-412",
    rule: "ORD-05",
    does: "finds the row of a deleted customer, and compares before it sees that it is deleted",
    when: all(isPut, ({ before, reply }) => before?.removed === true && reply.status === 404),
    act: refused(412),
  },
  {
    id: "unknown-field-of-missing-404",
    rule: "ORD-12",
    does: "looks names up in the row, so that a customer that is not there is 404 first",
    when: all(read(400), neverThere),
    act: refused(404),
  },
];

const METHOD_CASES: Row[] = (["PATCH", "DELETE"] as const).flatMap((method) => [
  {
    id: `${method.toLowerCase()}-never-matches`,
    rule: method === "PATCH" ? "IFM-30" : "IFM-40",
    does: `compares the token of ${method} with the one in its column, quotes on one side only`,
    when: ({ request, reply, before }) =>
      request.method === method && before?.removed === false && reply.status < 300,
    act: ({ service, before, customer }) => {
      Object.assign(customer ?? {}, before);
      return service.refuse(412, "precondition-failed", [["ETag", before?.tag ?? ""]]);
    },
  },
  {
    id: `${method.toLowerCase()}-412-weakened`,
    rule: method === "PATCH" ? "IFM-34" : "IFM-44",
    does: `weakens the tag on the 412 of ${method} alone`,
    when: ({ request, reply, met }) => request.method === method && reply.status === 412 && !met,
    act: weakened,
  },
]);

/** Writes that are carried out unchecked for what their body says. */
const UNCHECKED: Row[] = (
  [
    [
      "patch-of-nothing",
      "PATCH",
      "takes {} for a PATCH that needs no precondition",
      ({ body }) => Object.keys(body).length === 0,
    ],
    [
      "patch-of-stored-values",
      "PATCH",
      "skips the check of a PATCH that changes nothing",
      ({ body, before }) => body["Name"] === before?.name,
    ],
    [
      "put-of-stored-values",
      "PUT",
      "skips the check of a PUT that changes nothing",
      ({ body, before }) => body["Name"] === before?.name && body["Email"] === before?.email,
    ],
  ] as [string, "PUT" | "PATCH", string, (turn: Turn) => boolean][]
).map(([id, method, does, when]) => ({
  id: `${id}-unchecked`,
  rule: method === "PUT" ? "IFM-23" : "IFM-36",
  does: `${does}, and bumps the version`,
  when: (turn) =>
    turn.request.method === method &&
    turn.before?.removed === false &&
    (turn.reply.status === 428 || turn.reply.status === 412) &&
    when(turn),
  act: async ({ request, before, send }) => await send(withIfMatch(request, before?.tag)),
}));

const WRITES: Row[] = [
  {
    id: "put-200-without-body",
    rule: "IFM-02",
    does: "answers a PUT with 200 and nothing",
    when: all(isPut, answered(204)),
    act: as(200, ""),
  },
  {
    id: "patch-changes-nothing",
    rule: "IFM-30",
    does: "answers a PATCH with 204 and a new tag, and stores nothing: the mapper skips what it does not know",
    when: ({ request, reply }) => request.method === "PATCH" && reply.status === 204,
    act: spoiling((customer, { before }) => {
      const { name, email, status } = before ?? customer;
      return { name, email, status };
    }),
  },
  {
    id: "validates-after-assigning",
    rule: "FLD-16",
    does: "assigns a PUT to its entity, then refuses it; the session writes the entity all the same",
    when: ({ request, reply, before, sent }) =>
      request.method === "PUT" && reply.status === 400 && before?.removed === false && sent === before.tag,
    act: overwriting(({ body }) => ({
      name: String(body["Name"] ?? ""),
      email: String(body["Email"] ?? ""),
    })),
  },
  {
    id: "body-id-decides-the-row",
    rule: "FLD-15",
    does: "saves a PUT under the id of its body: a second customer with that id comes into being",
    when: (turn) =>
      isPut(turn) &&
      turn.reply.status < 300 &&
      typeof turn.body["Id"] === "string" &&
      turn.body["Id"] !== turn.before?.id,
    act: ({ reply, body, service, customer }) => {
      const id = String(body["Id"]).toLowerCase();
      if (customer !== undefined) service.customers.set(id, { ...customer, id });
      return reply;
    },
  },
  {
    id: "redirects-to-the-id-of-the-body",
    rule: "FLD-15",
    does: "redirects a PUT that names another id to that id",
    when: (turn) => isPut(turn) && typeof turn.body["Id"] === "string" && turn.body["Id"] !== turn.before?.id,
    act: ({ body }) => ({
      status: 303,
      headers: [["Location", `/customers/${String(body["Id"])}`]],
      body: "",
    }),
  },
  {
    id: "name-as-number-503",
    rule: "FLD-18",
    does: "hands a name that is no string to a service that then falls over",
    when: (turn) => isPut(turn) && typeof turn.body["Name"] === "number",
    act: refused(503),
  },
];

const CALLERS: Row[] = [
  {
    id: "limited-answered-empty",
    rule: "AUT-01",
    does: "answers a limited caller that asks for the email with an empty object",
    when: all(read(403), by("limited")),
    act: ({ before }) => object({}, before?.tag),
  },
  {
    id: "masked-email-in-default-set",
    rule: "AUT-05",
    does: "shows a masked email in the default set of a limited caller",
    when: all(wholeRead, by("limited")),
    act: showing((body) => ({ ...body, Email: "a***@example.org" })),
  },
  {
    id: "email-as-login",
    rule: "AUT-05",
    does: "shows the email as login in the default set of a limited caller",
    when: all(wholeRead, by("limited")),
    act: revealing("Login", "email"),
  },
  {
    id: "other-tenant-answered-empty",
    rule: "AUT-08",
    does: "filters the columns by tenant, not the row: another tenant gets 200 and an empty object",
    when: all(read(404), by("other"), ({ before }) => before !== undefined),
    act: () => object({}),
  },
  {
    id: "other-tenant-404-names-customer",
    rule: "AUT-08",
    does: "names the customer in the 404 to another tenant",
    when: all(read(404), by("other"), ({ before }) => before !== undefined),
    act: revealing("detail", "name"),
  },
  {
    id: "other-tenant-refused-but-applied",
    rule: "AUT-09",
    does: "checks the tenant of a write when it makes the answer, after the statement has run",
    when: all(isForeignWrite, withCurrentTag),
    act: async (turn) => {
      await asOwner(turn);
      return turn.reply;
    },
  },
  {
    id: "other-tenant-write-told-204",
    rule: "AUT-09",
    does: "ignores that the UPDATE of another tenant's customer changed no row",
    when: all(isForeignWrite, withCurrentTag),
    act: () => ({ status: 204, headers: [] }),
  },
  {
    id: "other-tenant-428-names-customer",
    rule: "AUT-10",
    does: "tells another tenant whose customer it is in the answer to a write that would be 428",
    when: all(isForeignWrite, isThere, ({ sent }) => sent === undefined || sent === ""),
    act: namingRefusal(428),
  },
  {
    id: "other-tenant-412-names-customer",
    rule: "AUT-10",
    does: "tells another tenant whose customer it is in the answer to a write that would be 412",
    when: all(isForeignWrite, isThere, (turn) => Boolean(turn.sent) && !withCurrentTag(turn)),
    act: namingRefusal(404),
  },
  {
    id: "other-tenant-422-names-customer",
    rule: "AUT-10",
    does: "judges the body of another tenant's PUT first, and names the customer in the 422",
    when: all(isPut, by("other"), isThere, ({ body }) => typeof body["Email"] !== "string"),
    act: namingRefusal(422),
  },
  {
    id: "forbidden-field-by-double-encoding",
    rule: "AUT-04",
    does: "decodes the field names twice, once behind the policy",
    when: ({ request, caller }) =>
      isRead(request) && caller === "limited" && /fields=[^&]*%25[46]/i.test(request.query),
    act: ({ request, service, send }) =>
      send({ ...privileged(request, service), query: decodeURIComponent(request.query) }),
  },
];

const READS: Row[] = [
  {
    id: "answers-203",
    rule: "ETG-01",
    does: "stands behind a proxy that transforms reads and says so with 203",
    when: wholeRead,
    act: as(203),
  },
  {
    id: "answers-list-of-one",
    rule: "ETG-01",
    does: "answers a read with the rows of its query: a list of one",
    when: wholeRead,
    act: showing((body) => [body]),
  },
  {
    id: "projected-read-weakened",
    rule: "ETG-05",
    does: "weakens the tag of projections, as a filter that rewrites bodies does",
    when: projectedRead,
    act: weakened,
  },
  {
    id: "delete-answers-weakened",
    rule: "IFM-44",
    does: "stands behind a gateway that weakens the tags of everything about DELETE",
    when: ({ request, reply }) => request.method === "DELETE" && getHeader(reply, "etag") !== undefined,
    act: weakened,
  },
  {
    id: "brotli-weakens-etag",
    rule: "ENV-01",
    does: "stands behind a proxy that compresses with brotli and weakens the tag then",
    when: (turn) => read()(turn) && headerLines(turn.request, "accept-encoding").join().trim() === "br",
    act: weakened,
  },
  {
    id: "projected-read-moves-tag",
    rule: "ETG-04",
    does: "writes an access log of projections into the versioned row",
    when: projectedRead,
    act: spoiling((customer, turn) => ({ tag: newTag(customer, turn) })),
  },
  {
    id: "repeated-names-503",
    rule: "FLD-13",
    does: "selects a column twice, and its database driver gives up",
    when: ({ request }) => isRead(request) && /fields=(\w+),\1\b/.test(request.query),
    act: refused(503),
  },
  {
    id: "field-list-cut",
    rule: "FLD-14",
    does: "cuts a long list of names off, and shows everything where a name is cut in the middle",
    when: (turn) => read()(turn) && turn.request.query.length > 3000,
    act: showing((body) => ({ ...body, Status: "Active" })),
  },
  {
    id: "unknown-field-known-to-policy",
    rule: "FLD-03",
    does: "still knows a field that was dropped from the model, and shows nothing for it",
    when: (turn) => read(400)(turn) && /fields=(name,)?phone$/.test(turn.request.query),
    act: ({ before }) => object({}, before?.tag),
  },
];

const DOCUMENTS: Row[] = [
  {
    id: "problem-title-is-a-number",
    rule: "PRB-03",
    does: "sends a number as the title of a 412 document",
    when: all(isPut, answered(412)),
    act: showing((body) => ({ ...body, title: 412 })),
  },
];

/** A PATCH whose members go where they should not. */
const patching = (id: string, rule: string, does: string, when: When, act: Act): Row => ({
  id,
  rule,
  does,
  when: all(({ request }) => request.method === "PATCH", withCurrentTag, when),
  act: async (turn) => {
    await act(turn);
    return { status: 204, headers: [["ETag", turn.customer?.tag ?? ""]] };
  },
});

const STORED: readonly (readonly [id: string, does: string, change: (text: string) => string])[] = [
  [
    "stores-html-entities",
    "escapes what it stores for HTML",
    (text) => text.replaceAll("&", "&amp;").replaceAll("'", "&#39;"),
  ],
  [
    "stores-doubled-apostrophes",
    "doubles apostrophes for SQL and binds them as well",
    (text) => text.replaceAll("'", "''"),
  ],
  [
    "stores-no-emoji",
    "keeps names in a column of three bytes a character",
    (text) => text.replace(/[\u{10000}-\u{10ffff}].*/u, ""),
  ],
  [
    "stores-latin-1-as-utf-8",
    "reads the bytes of a body as Latin-1",
    (text) => Buffer.from(text, "utf8").toString("latin1"),
  ],
  ["strips-accents", "folds accents away, for a search index", withoutAccents],
];

const BODIES: Row[] = [
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
];

const DAMAGES: Fault[] = STORED.map(
  ([id, does, change]): Fault => ({ id, rule: "FLD-20", does, plant: damaging(change) }),
);

const CHAINS: Row[] = [
  {
    id: "412-tag-of-a-replica",
    rule: "IFM-07",
    does: "answers a 412 from a replica that has not seen the last write",
    when: ({ request, reply, before }) =>
      isWrite(request) && reply.status === 412 && (before?.formerTags.length ?? 0) > 0,
    act: ({ reply, before }) => setHeader(reply, "ETag", before?.formerTags.at(-1)),
  },
  {
    id: "name-alone-keeps-tag-on-patch",
    rule: "ETG-11",
    does: "bumps the version in a trigger that watches the email column only",
    when: ({ request, reply, body }) =>
      request.method === "PATCH" && reply.status < 300 && !("Email" in body),
    act: ({ reply, before, customer }) => {
      Object.assign(customer ?? {}, { tag: before?.tag });
      return setHeader(reply, "ETag", before?.tag);
    },
  },
  {
    id: "contended-put-repeated",
    rule: "ATM-01",
    does: "stands behind a gateway that sends a PUT again when it had to wait, and passes on the second answer",
    when: (turn) => isPut(turn) && turn.met && turn.reply.status < 300,
    act: async ({ request, send }) =>
      await send(withIfMatch(request, headerLines(request, "if-match")[0]?.trim())),
  },
];

/** The cache that answers writes knows a new tag only once it was read. */
const KNOWN_AFTER_A_READ: Fault = {
  id: "answered-tag-known-after-a-read",
  rule: "ETG-07",
  does: "compares If-Match with a cache that only reads fill, so that the tag of a 204 does not work at once",
  plant: (ran) => (service) => {
    const unread = new Set<string>();
    return {
      async around(request, next) {
        const customer = customerOf(request, service);
        if (customer === undefined) return await next(request);
        const current = headerLines(request, "if-match").join().trim() === customer.tag;
        if (isWrite(request) && current && unread.has(customer.id)) {
          ran();
          return service.refuse(412, "precondition-failed", [["ETag", customer.tag]]);
        }
        const reply = await next(request);
        if (isRead(request)) unread.delete(customer.id);
        else if (reply.status < 300) unread.add(customer.id);
        return reply;
      },
    };
  },
};

/** A caching layer keys refusals on the address alone. */
const NEGATIVE_CACHE: Fault = {
  id: "negative-cache-forgets-caller",
  rule: "AUT-08",
  does: "caches the 404 to another tenant for a moment and hands it to the owner",
  plant: (ran) => (service) => {
    const refused = new Set<string>();
    return {
      async around(request, next) {
        const key = `${request.path}?${request.query}`;
        if (isRead(request) && service.caller(request) === "main" && refused.delete(key)) {
          ran();
          return service.refuse(404, "not-found");
        }
        const reply = await next(request);
        if (isRead(request) && service.caller(request) === "other" && reply.status === 404) refused.add(key);
        return reply;
      },
    };
  },
};

/** During a rolling deployment two versions answer in turn. */
const TWO_VERSIONS: Fault = {
  id: "two-versions-answer-in-turn",
  rule: "FLD-11",
  does: "runs two versions side by side, one of which has CreatedAt in its default set",
  plant: (ran) =>
    replying(
      all(wholeRead, every(2)),
      showing((body) => ({ ...body, CreatedAt: "2026-11-27T00:00:00Z" })),
    )(ran),
};

/** A bounded buffer in front of the database drops what does not fit. */
const LOSES_SOME: Fault[] = (["name", "email"] as const).map((field) => ({
  id: `some-puts-lose-${field}`,
  comesAndGoes: true,
  rule: "ETG-06",
  does: `acknowledges every PUT with a new tag, and loses the ${field} of every fifth in a buffer`,
  plant: (ran) =>
    replying(
      all(write("PUT"), isThere, every(5)),
      spoiling((customer, { before }) => ({ [field]: (before ?? customer)[field] })),
    )(ran),
}));

const NO_UUID: Fault = {
  id: "ids-are-no-uuids",
  rule: "FLD-12",
  does: "gives ids that are no UUIDs",
  plant: deciding("mint", (sound, ran) => (version, before, after) => {
    if (before === undefined) {
      ran();
      after.id = `cus-${version}`;
    }
    return sound(version, before, after);
  }),
};

const planted = ({ when, act, ...fault }: Row): Fault => ({ ...fault, plant: replying(when, act) });

export const ONE_CASE_FAULTS: Fault[] = [
  ...[
    ...MISSING,
    ...METHOD_CASES,
    ...UNCHECKED,
    ...WRITES,
    ...CALLERS,
    ...READS,
    ...DOCUMENTS,
    ...BODIES,
  ].map(planted),
  ...DAMAGES,
  ...CHAINS.map(planted),
  KNOWN_AFTER_A_READ,
  NEGATIVE_CACHE,
  TWO_VERSIONS,
  ...LOSES_SOME,
  NO_UUID,
];
