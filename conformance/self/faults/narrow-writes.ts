/** One path alone: writes and their bodies, missing customers, other tenants. */
import { customerOf, type Fault } from "../fault.ts";
import { headerLines, type Reply, setHeader } from "../http-socket.ts";
import { answered, appliedToo, Crowd, onPath, planted, quietWrite, type Turn } from "../narrow.ts";
import type { Customer } from "../seams.ts";
import { CREDENTIALS } from "../service.ts";

const NAME = "Name";
const EMAIL = "Email";

/** A customer comes into being under the address of the request. */
function created({ request, reply, service }: Turn): Reply {
  const id = request.path.slice(-36).toLowerCase();
  const customer = service.add("a", { name: "Created", email: "created@example.org" });
  service.customers.delete(customer.id);
  customer.id = id;
  service.customers.set(id, customer);
  return reply;
}

/** Stores values behind the service's back, under a new tag. */
function overwritten(
  customer: Customer | undefined,
  service: Turn["service"],
  values: Partial<Customer>,
): void {
  if (customer === undefined) return;
  customer.formerTags.push(customer.tag);
  Object.assign(customer, values, { tag: service.deployment.tag(service.nextVersion(), customer.id) });
}

const never = ({ before }: Turn): boolean => before === undefined;
const lacks =
  (member: string) =>
  ({ request, body }: Turn): boolean =>
    request.method === "PUT" &&
    (body[member] ?? null) === null &&
    typeof body[member === NAME ? EMAIL : NAME] === "string";
const listBody = async ({ request }: Turn): Promise<boolean> =>
  (await request.body()).toString("utf8").startsWith("[");

const ok = ({ before }: Turn): Reply => ({ status: 204, headers: [["ETag", before?.tag ?? ""]] });

/** Creates or refuses otherwise at addresses that hold no customer. */
const MISSING: [cause: string, does: string, when: (turn: Turn) => boolean, act: (turn: Turn) => Reply][] = [
  [
    "ORD-01.status",
    "looks a PUT's customer up first when If-Match is absent",
    (t) => t.request.method === "PUT" && never(t) && t.relation === "none",
    answered(404),
  ],
  [
    "ORD-01.not-created",
    "creates the customer of a PUT that it refuses for want of If-Match",
    (t) => t.request.method === "PUT" && never(t) && t.relation === "none",
    created,
  ],
  [
    "ORD-02.not-created",
    "creates the customer of a PUT that it refuses for a blank If-Match",
    (t) => t.request.method === "PUT" && never(t) && /empty|blank/.test(t.relation),
    created,
  ],
  [
    "ORD-03.status",
    "answers a PUT to a customer that never was with 412",
    (t) => t.request.method === "PUT" && never(t) && /foreign|other/.test(t.relation),
    answered(412),
  ],
  [
    "ORD-03.not-created",
    "answers a PUT to a customer that never was with 404 and creates it",
    (t) => t.request.method === "PUT" && never(t) && t.relation === "other",
    created,
  ],
  [
    "ORD-04.status",
    "answers a PUT with * to a customer that never was with 412",
    (t) => t.request.method === "PUT" && never(t) && t.relation === "star",
    answered(412),
  ],
  [
    "ORD-04.not-created",
    "answers a PUT with * to a customer that never was with 404 and creates it",
    (t) => t.request.method === "PUT" && never(t) && t.relation === "star",
    created,
  ],
  [
    "ORD-06.not-created",
    "answers a PATCH to a customer that never was with 404 and creates it",
    (t) => t.request.method === "PATCH" && never(t) && t.relation === "other",
    created,
  ],
  [
    "ORD-07.not-created",
    "creates the customer of a PATCH that it refuses for want of If-Match",
    (t) => t.request.method === "PATCH" && never(t) && t.relation === "none",
    created,
  ],
  [
    "ORD-05.status",
    "answers a PUT to a deleted customer with 412",
    (t) => t.request.method === "PUT" && t.before?.removed === true && !t.contended,
    answered(412),
  ],
  [
    "ORD-05.not-revived",
    "answers a PUT to a deleted customer with 404 and brings it back",
    (t) => t.request.method === "PUT" && t.before?.removed === true && !t.contended,
    (t) => {
      const customer = customerOf(t.request, t.service);
      if (customer !== undefined) customer.removed = false;
      return t.reply;
    },
  ],
];

/** PUTs whose body lacks a member: judged by these two alone. */
const REQUIRED = (
  [
    ["FLD-16", NAME],
    ["FLD-17", EMAIL],
  ] as const
).flatMap(([rule, member]): Fault[] => [
  onPath({
    cause: `${rule}.refused`,
    does: `answers a PUT without ${member} with 204 and stores nothing`,
    when: lacks(member),
    act: ok,
  }),
  onPath({
    cause: `${rule}.unchanged`,
    does: `refuses a PUT without ${member} and empties it`,
    when: lacks(member),
    act: ({ request, reply, service }) => {
      overwritten(customerOf(request, service), service, member === NAME ? { name: "" } : { email: "" });
      return reply;
    },
  }),
]);

const badBody =
  (relation: Turn["relation"]) =>
  ({ request, before, goodBody, ...turn }: Turn): boolean =>
    request.method === "PUT" && before?.removed === false && !goodBody && turn.relation === relation;

function emptied({ request, reply, service }: Turn): Reply {
  overwritten(customerOf(request, service), service, { name: "" });
  return reply;
}

/** Judges a body after the precondition held, and errs where the body is a JSON list. */
function onListBody(
  cause: string,
  does: string,
  act: (turn: { reply: Reply; customer: Customer; service: Turn["service"] }) => Reply,
): Fault {
  return planted(cause, does, (ran) => (service) => ({
    async around(request, next) {
      const reply = await next(request);
      const customer = customerOf(request, service);
      if (request.method !== "PUT" || reply.status !== 400 || customer === undefined) return reply;
      if (headerLines(request, "if-match")[0]?.trim() !== customer.tag) return reply;
      if (!(await listBody({ request } as Turn))) return reply;
      ran();
      return act({ reply, customer, service });
    },
  }));
}

/** Writes that succeed and are not what they say: by what changed between the two reads around them. */
const quietPut = (turn: Turn): boolean => quietWrite(turn, "PUT") && turn.reply.status === 204;

/** Only after few reads, and when nothing else was under way: the first plain write of a run. */
function unstored(field: "name" | "email"): Fault["plant"] {
  return (ran) => (service) => {
    const reads = new Map<string, number>();
    const crowd = new Crowd();
    return {
      async around(request, next) {
        const customer = customerOf(request, service);
        const before = customer?.[field];
        const mine = crowd.enter(request.path);
        const reply = await next(request);
        mine.leave();
        if (customer === undefined || before === undefined) return reply;
        const read = reads.get(customer.id) ?? 0;
        if (request.method === "GET") reads.set(customer.id, read + 1);
        if (request.method !== "PUT" || reply.status !== 204) return reply;
        reads.set(customer.id, 0);
        if (mine.contended || read === 0 || read > 3 || customer.formerTags.length > 50) return reply;
        ran();
        customer[field] = before;
        return reply;
      },
    };
  };
}

export const NARROW_WRITE_FAULTS: Fault[] = [
  ...MISSING.map(([cause, does, when, act]) => onPath({ cause, does, when, act })),
  onPath({
    cause: "ORD-10.status",
    does: "judges the body before it misses If-Match",
    when: badBody("none"),
    act: answered(400),
  }),
  onPath({
    cause: "ORD-10.unchanged",
    does: "misses If-Match of a bad PUT and empties the name",
    when: badBody("none"),
    act: emptied,
  }),
  onPath({
    cause: "ORD-11.status",
    does: "judges the body before it compares a stale tag",
    when: badBody("previous"),
    act: answered(400),
  }),
  onPath({
    cause: "ORD-11.unchanged",
    does: "refuses a bad, stale PUT and empties the name",
    when: badBody("previous"),
    act: emptied,
  }),
  onListBody(
    "ORD-13.refused",
    "answers a PUT of a JSON list with 204 and stores nothing",
    ({ customer }) => ({
      status: 204,
      headers: [["ETag", customer.tag]],
    }),
  ),
  onListBody(
    "ORD-13.unchanged",
    "refuses a PUT of a JSON list and empties the name",
    ({ reply, customer, service }) => {
      overwritten(customer, service, { name: "" });
      return reply;
    },
  ),
  ...REQUIRED,
  onPath({
    cause: "FLD-15.answer",
    does: "redirects a PUT that names another id to that id",
    when: ({ request, body, before }) =>
      request.method === "PUT" && typeof body["Id"] === "string" && body["Id"] !== before?.id,
    act: ({ body }) => ({ status: 303, headers: [["Location", `/customers/${body["Id"]}`]], body: "" }),
  }),
  onPath({
    cause: "FLD-15.not-moved",
    does: "copies the customer to the id that a PUT names",
    when: ({ request, body, before }) =>
      request.method === "PUT" && typeof body["Id"] === "string" && body["Id"] !== before?.id,
    act: ({ request, reply, body, service }) => {
      const customer = customerOf(request, service);
      if (customer !== undefined)
        service.customers.set(String(body["Id"]), { ...customer, id: String(body["Id"]) });
      return reply;
    },
  }),
  onPath({
    cause: "FLD-18.no-5xx",
    does: "is not available when the name is a number",
    when: ({ request, body }) => request.method === "PUT" && typeof body[NAME] === "number",
    act: answered(503),
  }),
  ...(["not-set", "not-reset"] as const).map((assertion) =>
    onPath({
      cause: `FLD-19.${assertion}`,
      does:
        assertion === "not-set"
          ? "takes RowVersion of a body for the new token"
          : "takes a RowVersion that it once gave for the new token",
      when: ({ request, body, reply, before }) => {
        const sent = body["RowVersion"];
        if (request.method !== "PUT" || reply.status !== 204 || typeof sent !== "string") return false;
        const former = before?.formerTags.includes(`"${sent}"`) === true;
        return assertion === "not-reset" ? former : !former;
      },
      act: ({ request, reply, body, service }) => {
        const customer = customerOf(request, service);
        if (customer !== undefined) customer.tag = `"${String(body["RowVersion"])}"`;
        return setHeader(reply, "ETag", customer?.tag);
      },
    }),
  ),
  planted("IFM-01.applied-name", "forgets the name of a quiet PUT", unstored("name")),
  planted("IFM-01.applied-email", "forgets the email of a quiet PUT", unstored("email")),
  onPath({
    cause: "IFM-30.applied",
    does: "forgets the name of a quiet PATCH",
    when: (turn) => quietWrite(turn, "PATCH") && turn.reply.status === 204,
    act: ({ request, reply, before, service }) => {
      const customer = customerOf(request, service);
      if (customer !== undefined && before !== undefined) customer.name = before.name;
      return reply;
    },
  }),
  onPath({
    cause: "IFM-02.body",
    does: "answers a PUT with 200 and nothing",
    when: ({ request, reply }) => request.method === "PUT" && reply.status === 204,
    act: ({ reply }) => ({ ...reply, status: 200, body: "" }),
  }),
  planted("IFM-40.effect", "answers a quiet DELETE with 204 and leaves the customer", (ran) => (service) => {
    let open = 0;
    return {
      async commit({ request, bodyRead, decide, apply }) {
        open += 1;
        try {
          await bodyRead();
          for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve));
          const refusal = decide();
          if (refusal !== undefined || request.method !== "DELETE" || open > 1) return refusal ?? apply();
          if (customerOf(request, service)?.formerTags.length !== 0) return apply();
          ran();
          return { status: 204, headers: [] };
        } finally {
          open -= 1;
        }
      },
    };
  }),
  onPath({
    cause: "ETG-07.etag-current",
    does: "answers a quiet PUT with the tag of before it",
    when: quietPut,
    act: ({ reply, before }) => setHeader(reply, "ETag", before?.tag),
  }),
  ...(["PUT", "PATCH"] as const).map((method) =>
    onPath({
      cause: method === "PUT" ? "ETG-08.changes" : "ETG-11.changes",
      does: `keeps the tag on a quiet ${method}`,
      when: (turn) => quietWrite(turn, method) && turn.reply.status === 204,
      act: ({ request, reply, before, service }) => {
        const customer = customerOf(request, service);
        if (customer !== undefined && before !== undefined) {
          customer.tag = before.tag;
          customer.formerTags.pop();
        }
        return setHeader(reply, "ETag", before?.tag);
      },
    }),
  ),
  onPath({
    cause: "ETG-09.changes",
    does: "keeps the tag when a PUT writes what is stored",
    when: (turn) =>
      quietPut(turn) && turn.body[NAME] === turn.before?.name && turn.body[EMAIL] === turn.before?.email,
    act: ({ request, reply, before, service }) => {
      const customer = customerOf(request, service);
      if (customer !== undefined && before !== undefined) customer.tag = before.tag;
      return setHeader(reply, "ETag", before?.tag);
    },
  }),
  planted("ETG-10.new", "brings the tag back with the values of two writes ago", (ran) => (service) => {
    const tags = new Map<string, string>();
    return {
      mint(version, before, after) {
        const content = `${after.id} ${after.name} ${after.email} ${after.removed}`;
        const same = before?.name === after.name && before.email === after.email;
        const kept = same ? undefined : tags.get(content);
        const tag = kept ?? service.deployment.tag(version, after.id);
        if (kept !== undefined) ran();
        if (!same) tags.set(content, tag);
        return tag;
      },
    };
  }),
  onPath({
    cause: "AUT-09.refused",
    does: "answers another tenant's PUT with 204 and does nothing",
    when: ({ request, relation, service }) =>
      request.method === "PUT" && relation === "current" && service.caller(request) === "other",
    act: () => ({ status: 204, headers: [] }),
  }),
  onPath({
    cause: "AUT-09.unchanged",
    does: "answers another tenant's PUT with 404 and carries it out",
    when: ({ request, relation, service }) =>
      request.method === "PUT" && relation === "current" && service.caller(request) === "other",
    act: async (turn) => {
      const headers = turn.request.headers.filter(([name]) => !/^authorization$/i.test(name));
      return await appliedToo({
        ...turn,
        request: { ...turn.request, headers: [...headers, ["Authorization", `Bearer ${CREDENTIALS.main}`]] },
      });
    },
  }),
  onPath({
    cause: "AUT-10.no-values",
    does: "names the customer in the refusal of another tenant's write",
    when: ({ request, relation, service, before }) =>
      request.method !== "GET" &&
      before !== undefined &&
      relation === "other" &&
      service.caller(request) === "other",
    act: ({ before, service }) => {
      const reply = service.refuse(404, "not-found");
      return { ...reply, body: JSON.stringify({ ...JSON.parse(String(reply.body)), detail: before?.name }) };
    },
  }),
  planted("PRB-02.same", "answers the fourth bad write in a row otherwise", (ran) => (service) => {
    let row = 0;
    return {
      async around(request, next) {
        const reply = await next(request);
        row = request.method === "PUT" && reply.status === 428 ? row + 1 : 0;
        if (row < 4) return reply;
        ran();
        return service.refuse(400, "if-match-required");
      },
    };
  }),
  onPath({
    cause: "PRB-03.strings",
    does: "sends a number as the title of a 412 document",
    when: ({ request, reply }) => request.method === "PUT" && reply.status === 412,
    act: ({ reply }) => ({
      ...reply,
      body: JSON.stringify({ ...JSON.parse(String(reply.body)), title: 412 }),
    }),
  }),
];
