/** One path alone: writes and their bodies, missing customers, other tenants. */
import { customerOf, type Fault } from "../fault.ts";
import { answered, appliedToo, Crowd, onPath, planted, quietWrite, type Turn } from "../narrow.ts";
import { headerLines, type Reply } from "../service/http-socket.ts";
import type { Customer } from "../service/seams.ts";
import { CREDENTIALS } from "../service/service.ts";

export const NAME = "Name";
export const EMAIL = "Email";

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
export function overwritten(
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
export const REQUIRED = (
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

export const badBody =
  (relation: Turn["relation"]) =>
  ({ request, before, goodBody, ...turn }: Turn): boolean =>
    request.method === "PUT" && before?.removed === false && !goodBody && turn.relation === relation;

export function emptied({ request, reply, service }: Turn): Reply {
  overwritten(customerOf(request, service), service, { name: "" });
  return reply;
}

/** Judges a body after the precondition held, and errs where the body is a JSON list. */
export function onListBody(
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
export const quietPut = (turn: Turn): boolean => quietWrite(turn, "PUT") && turn.reply.status === 204;

/** Only after few reads, and when nothing else was under way: the first plain write of a run. */
export function unstored(field: "name" | "email"): Fault["plant"] {
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
