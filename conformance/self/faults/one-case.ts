/** What goes wrong in one case only: one kind of caller, of missing customer, of read, of body. */
import { customerOf, type Fault, isRead, withBody, withIfMatch } from "../fault.ts";
import { getHeader, headerLines, type Reply, setHeader } from "../service/http-socket.ts";
import { isWrite } from "../service/seams.ts";
import { CREDENTIALS } from "../service/service.ts";
import { inOneCase, overwrite, type Row, type Turn } from "../turn.ts";

const isPut = ({ request }: Turn) => request.method === "PUT";
const neverThere = ({ before }: Turn) => before === undefined;
const answered = (status: number) => (turn: Turn) => turn.reply.status === status;
const read = (status: number) => (turn: Turn) => isRead(turn.request) && turn.reply.status === status;
const told =
  (status: number) =>
  ({ service }: Turn): Reply =>
    service.refuse(status, "refused");
const all =
  (...tests: ((turn: Turn) => boolean)[]) =>
  (turn: Turn) =>
    tests.every((test) => test(turn));
const by = (caller: Turn["caller"]) => (turn: Turn) => turn.caller === caller;
const wholeRead = (turn: Turn) => read(200)(turn) && turn.request.query === "";
const projectedRead = (turn: Turn) => read(200)(turn) && turn.request.query.startsWith("fields=");

/** A customer comes into being under the address of the request. */
function created({ request, reply, service }: Turn): Reply {
  const customer = service.add("a", { name: "Created", email: "created@example.org" });
  service.customers.delete(customer.id);
  customer.id = request.path.slice(-36).toLowerCase();
  service.customers.set(customer.id, customer);
  return reply;
}

/** Adds a member that shows the name or the email. */
const revealing =
  (member: string, field: "name" | "email") =>
  ({ reply, before }: Turn): Reply =>
    withBody(reply, (body) => ({ ...body, [member]: `for ${before?.[field]}` }));

const weakened = ({ reply }: Turn): Reply => setHeader(reply, "ETag", `W/${getHeader(reply, "etag")}`);

const asOwner = ({ request }: Turn) => {
  const headers = request.headers.filter(([name]) => name.toLowerCase() !== "authorization");
  return {
    ...request,
    headers: [...headers, ["Authorization", `Bearer ${CREDENTIALS.main}`]] as [string, string][],
  };
};

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
    act: told(412),
  },
  {
    id: "unknown-field-of-missing-404",
    rule: "ORD-12",
    does: "looks names up in the row, so that a customer that is not there is 404 first",
    when: all(read(400), neverThere),
    act: told(404),
  },
];

const METHOD_CASES: Row[] = (["PATCH", "DELETE"] as const).flatMap((method) => [
  {
    id: `${method.toLowerCase()}-never-matches`,
    rule: method === "PATCH" ? "IFM-30" : "IFM-40",
    does: `compares the token of ${method} with the one in its column, quotes on one side only`,
    when: ({ request, reply, before }) =>
      request.method === method && before?.removed === false && reply.status < 300,
    act: ({ request, service, before }) => {
      const customer = customerOf(request, service);
      if (customer !== undefined && before !== undefined) Object.assign(customer, before);
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
    act: ({ reply }) => ({ ...reply, status: 200, body: "" }),
  },
  {
    id: "patch-changes-nothing",
    rule: "IFM-30",
    does: "answers a PATCH with 204 and a new tag, and stores nothing: the mapper skips what it does not know",
    when: ({ request, reply }) => request.method === "PATCH" && reply.status === 204,
    act: ({ request, reply, before, service }) => {
      const { name, email, status } = before ?? {};
      Object.assign(customerOf(request, service) ?? {}, { name, email, status });
      return reply;
    },
  },
  {
    id: "validates-after-assigning",
    rule: "FLD-16",
    does: "assigns a PUT to its entity, then refuses it; the session writes the entity all the same",
    when: ({ request, reply, before, sent }) =>
      request.method === "PUT" && reply.status === 400 && before?.removed === false && sent === before.tag,
    act: (turn) => {
      const { name, email } = turn.service.deployment.members;
      overwrite(turn, { name: String(turn.body[name] ?? ""), email: String(turn.body[email] ?? "") });
      return turn.reply;
    },
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
    act: ({ request, reply, body, service }) => {
      const customer = customerOf(request, service);
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
    act: told(503),
  },
];

const CALLERS: Row[] = [
  {
    id: "limited-answered-empty",
    rule: "AUT-01",
    does: "answers a limited caller that asks for the email with an empty object",
    when: all(read(403), by("limited")),
    act: ({ before }) => ({
      status: 200,
      headers: [
        ["ETag", before?.tag ?? ""],
        ["Content-Type", "application/json"],
      ],
      body: "{}",
    }),
  },
  {
    id: "masked-email-in-default-set",
    rule: "AUT-05",
    does: "shows a masked email in the default set of a limited caller",
    when: all(wholeRead, by("limited")),
    act: ({ reply }) => withBody(reply, (body) => ({ ...body, Email: "a***@example.org" })),
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
    act: () => ({ status: 200, headers: [["Content-Type", "application/json"]], body: "{}" }),
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
    when: ({ request, caller, before, sent }) =>
      isWrite(request) && caller === "other" && before?.removed === false && sent === before.tag,
    act: async (turn) => {
      await turn.send(asOwner(turn));
      return turn.reply;
    },
  },
  {
    id: "other-tenant-write-told-204",
    rule: "AUT-09",
    does: "ignores that the UPDATE of another tenant's customer changed no row",
    when: ({ request, caller, before, sent }) =>
      isWrite(request) && caller === "other" && before?.removed === false && sent === before.tag,
    act: () => ({ status: 204, headers: [] }),
  },
  ...(
    [
      ["428", ({ sent }) => sent === undefined || sent === ""],
      ["412", ({ sent, before }) => sent !== undefined && sent !== "" && sent !== before?.tag],
    ] as [string, (turn: Turn) => boolean][]
  ).map(
    ([status, when]): Row => ({
      id: `other-tenant-${status}-names-customer`,
      rule: "AUT-10",
      does: `tells another tenant whose customer it is in the answer to a write that would be ${status}`,
      when: (turn) =>
        isWrite(turn.request) && turn.caller === "other" && turn.before?.removed === false && when(turn),
      act: (turn) =>
        revealing(
          "detail",
          "name",
        )({ ...turn, reply: turn.service.refuse(Number(status) === 428 ? 428 : 404, "refused") }),
    }),
  ),
  {
    id: "other-tenant-422-names-customer",
    rule: "AUT-10",
    does: "judges the body of another tenant's PUT first, and names the customer in the 422",
    when: (turn) =>
      isPut(turn) &&
      turn.caller === "other" &&
      turn.before?.removed === false &&
      typeof turn.body["Email"] !== "string",
    act: (turn) => revealing("detail", "name")({ ...turn, reply: turn.service.refuse(422, "invalid-body") }),
  },
  {
    id: "forbidden-field-by-double-encoding",
    rule: "AUT-04",
    does: "decodes the field names twice, once behind the policy",
    when: ({ request, caller }) =>
      isRead(request) && caller === "limited" && /fields=[^&]*%25[46]/i.test(request.query),
    act: async (turn) => await turn.send({ ...asOwner(turn), query: decodeURIComponent(turn.request.query) }),
  },
];

const READS: Row[] = [
  {
    id: "answers-203",
    rule: "ETG-01",
    does: "stands behind a proxy that transforms reads and says so with 203",
    when: wholeRead,
    act: ({ reply }) => ({ ...reply, status: 203 }),
  },
  {
    id: "answers-list-of-one",
    rule: "ETG-01",
    does: "answers a read with the rows of its query: a list of one",
    when: wholeRead,
    act: ({ reply }) => withBody(reply, (body) => [body]),
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
    when: (turn) => read(200)(turn) && headerLines(turn.request, "accept-encoding").join().trim() === "br",
    act: weakened,
  },
  {
    id: "projected-read-moves-tag",
    rule: "ETG-04",
    does: "writes an access log of projections into the versioned row",
    when: projectedRead,
    act: (turn) => {
      const { request, service } = turn;
      const customer = customerOf(request, service);
      if (customer !== undefined)
        Object.assign(customer, { tag: service.deployment.tag(service.nextVersion(), customer.id) });
      return turn.reply;
    },
  },
  {
    id: "repeated-names-503",
    rule: "FLD-13",
    does: "selects a column twice, and its database driver gives up",
    when: ({ request }) => isRead(request) && /fields=(\w+),\1\b/.test(request.query),
    act: told(503),
  },
  {
    id: "field-list-cut",
    rule: "FLD-14",
    does: "cuts a long list of names off, and shows everything where a name is cut in the middle",
    when: (turn) => read(200)(turn) && turn.request.query.length > 3000,
    act: ({ reply }) => withBody(reply, (body) => ({ ...body, Status: "Active" })),
  },
  {
    id: "unknown-field-known-to-policy",
    rule: "FLD-03",
    does: "still knows a field that was dropped from the model, and shows nothing for it",
    when: (turn) => read(400)(turn) && /fields=(name,)?phone$/.test(turn.request.query),
    act: ({ before }) => ({
      status: 200,
      headers: [
        ["ETag", before?.tag ?? ""],
        ["Content-Type", "application/json"],
      ],
      body: "{}",
    }),
  },
];

const DOCUMENTS: Row[] = [
  {
    id: "problem-title-is-a-number",
    rule: "PRB-03",
    does: "sends a number as the title of a 412 document",
    when: all(isPut, answered(412)),
    act: ({ reply }) => withBody(reply, (body) => ({ ...body, title: 412 })),
  },
];

const BODIES: Row[] = [
  ...(
    [
      [
        "patch-moves-id",
        "FLD-15",
        "binds the Id of a PATCH to the row",
        "Id",
        (turn, value) => overwrite(turn, { id: String(value) }),
      ],
      [
        "patch-stores-any-type",
        "FLD-18",
        "writes what a PATCH names into a document store without a schema: a number stays one",
        "Name",
        (turn, value) =>
          typeof value === "string"
            ? undefined
            : Object.assign(customerOf(turn.request, turn.service) ?? {}, { name: value }),
      ],
      [
        "patch-sets-token",
        "FLD-19",
        "binds RowVersion in a PATCH to the column that makes the tag",
        "RowVersion",
        (turn, value) =>
          Object.assign(customerOf(turn.request, turn.service) ?? {}, {
            tag: `"${String(value).replaceAll('"', "")}"`,
          }),
      ],
    ] as [string, string, string, string, (turn: Turn, value: unknown) => unknown][]
  ).map(
    ([id, rule, does, member, act]): Row => ({
      id,
      rule,
      does,
      when: ({ request, body, sent, before }) =>
        request.method === "PATCH" &&
        member in body &&
        before?.removed === false &&
        sent === before.tag &&
        (member !== "Name" || typeof body[member] !== "string"),
      act: (turn) => {
        act(turn, turn.body[member]);
        return { status: 204, headers: [["ETag", customerOf(turn.request, turn.service)?.tag ?? ""]] };
      },
    }),
  ),
  ...(
    [
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
      [
        "strips-accents",
        "folds accents away, for a search index",
        (text) => text.normalize("NFD").replace(/\p{M}/gu, ""),
      ],
    ] as [string, string, (text: string) => string][]
  ).map(
    ([id, does, change]): Row => ({
      id,
      rule: "FLD-20",
      does,
      when: ({ request, reply, service, before }) => {
        const name = customerOf(request, service)?.name ?? "";
        return (
          /PUT|PATCH/.test(request.method) &&
          reply.status < 300 &&
          before?.name !== name &&
          change(name) !== name
        );
      },
      act: ({ request, reply, service }) => {
        const customer = customerOf(request, service);
        if (customer !== undefined) customer.name = change(customer.name);
        return reply;
      },
    }),
  ),
];

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
    act: ({ request, reply, before, service }) => {
      const customer = customerOf(request, service);
      if (customer !== undefined && before !== undefined) customer.tag = before.tag;
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
  plant: (ran) => () => {
    let reads = 0;
    return {
      async around(request, next) {
        const reply = await next(request);
        if (!isRead(request) || request.query !== "" || reply.status !== 200) return reply;
        reads += 1;
        if (reads % 2 !== 0) return reply;
        ran();
        return withBody(reply, (body) => ({ ...body, CreatedAt: "2026-11-27T00:00:00Z" }));
      },
    };
  },
};

/** A bounded buffer in front of the database drops what does not fit. */
const LOSES_SOME: Fault[] = (["name", "email"] as const).map((field) => ({
  id: `some-puts-lose-${field}`,
  comesAndGoes: true,
  rule: "ETG-06",
  does: `acknowledges every PUT with a new tag, and loses the ${field} of every fifth in a buffer`,
  plant: (ran) => (service) => {
    let puts = 0;
    return {
      async around(request, next) {
        const customer = customerOf(request, service);
        const before = customer?.[field];
        const reply = await next(request);
        if (request.method !== "PUT" || reply.status >= 300 || customer === undefined) return reply;
        puts += 1;
        if (puts % 5 !== 0 || before === undefined || before === customer[field]) return reply;
        ran();
        customer[field] = before;
        return reply;
      },
    };
  },
}));

const NO_UUID: Fault = {
  id: "ids-are-no-uuids",
  rule: "FLD-12",
  does: "gives ids that are no UUIDs",
  plant: (ran) => (service) => ({
    mint(version, before, after) {
      if (before === undefined) {
        ran();
        after.id = `cus-${version}`;
      }
      return service.deployment.tag(version, after.id);
    },
  }),
};

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
    ...CHAINS,
  ].map(inOneCase),
  KNOWN_AFTER_A_READ,
  NEGATIVE_CACHE,
  TWO_VERSIONS,
  ...LOSES_SOME,
  NO_UUID,
];
