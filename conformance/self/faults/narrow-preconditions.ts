/** One path alone: each form of If-Match, answered otherwise, or refused and carried out all the same. */
import { customerOf, type Fault } from "../fault.ts";
import {
  answered,
  appliedToo,
  Crowd,
  intercepted,
  onPath,
  planted,
  quietWrite,
  type Relation,
  type Turn,
} from "../narrow.ts";
import { headerLines, setHeader } from "../service/http-socket.ts";

const stored = ({ before, body, service }: Turn): boolean => {
  const { name, email } = service.deployment.members;
  return body[name] === before?.name && (body[email] === undefined || body[email] === before?.email);
};
const always = () => true;

const FORMS: [rule: string, method: string, relation: Relation][] = [
  ["IFM-05", "PUT", "empty"],
  ["IFM-06", "PUT", "blank"],
  ["IFM-09", "PUT", "weak"],
  ["IFM-10", "PUT", "unquoted"],
  ["IFM-11", "PUT", "case"],
  ["IFM-12", "PUT", "star"],
  ["IFM-13", "PUT", "list"],
  ["IFM-14", "PUT", "two-lines"],
  ["IFM-15", "PUT", "suffix"],
  ["IFM-16", "PUT", "spelling"],
  ["IFM-17", "PUT", "next"],
  ["IFM-18", "PUT", "older"],
  ["IFM-19", "PUT", "foreign"],
  ["IFM-20", "PUT", "pattern"],
  ["IFM-21", "PUT", "stand-in"],
  ["IFM-33", "PATCH", "blank"],
  ["IFM-35", "PATCH", "weak"],
  ["IFM-43", "DELETE", "blank"],
  ["IFM-45", "DELETE", "weak"],
];

/** The base rules: what they probe, other rules send as well. */
const BASES: [rule: string, method: string, relation: Relation, applied: (turn: Turn) => boolean][] = [
  ["IFM-03", "PUT", "previous", stored],
  ["IFM-04", "PUT", "none", ({ body }) => Object.keys(body).length === 2],
  ["IFM-31", "PATCH", "previous", stored],
  ["IFM-32", "PATCH", "none", always],
  ["IFM-41", "DELETE", "previous", always],
  ["IFM-42", "DELETE", "none", always],
];

const words = (relation: Relation): string => `If-Match is ${relation === "none" ? "absent" : relation}`;

export const NARROW_PRECONDITION_FAULTS: Fault[] = [
  ...FORMS.flatMap(([rule, method, relation]): Fault[] => [
    onPath({
      cause: `${rule}.status`,
      does: `refuses a ${method} with 409, where ${words(relation)}`,
      when: (turn) => quietWrite(turn, method) && turn.relation === relation,
      act: answered(409),
    }),
    onPath({
      cause: `${rule}.unchanged`,
      does: `refuses a ${method} rightly and carries it out, where ${words(relation)}`,
      when: (turn) => quietWrite(turn, method) && turn.relation === relation && turn.reply.status > 400,
      act: appliedToo,
    }),
  ]),
  ...BASES.flatMap(([rule, method, relation, marked]): Fault[] => [
    onPath({
      cause: `${rule}.status`,
      does: `refuses a quiet ${method} with 409, where ${words(relation)}`,
      when: (turn) => quietWrite(turn, method) && turn.relation === relation,
      act: answered(409),
    }),
    onPath({
      cause: `${rule}.unchanged`,
      does: `refuses a quiet ${method} rightly and carries it out, where ${words(relation)}`,
      when: (turn) => quietWrite(turn, method) && turn.relation === relation && marked(turn),
      act: appliedToo,
    }),
  ]),
  ...(
    [
      ["IFM-07", "PUT"],
      ["IFM-34", "PATCH"],
      ["IFM-44", "DELETE"],
    ] as const
  ).map(([rule, method]) =>
    onPath({
      cause: `${rule}.etag-current`,
      does: `weakens the tag on the 412 of ${method} alone`,
      when: ({ request, reply, contended }) =>
        request.method === method && reply.status === 412 && !contended,
      act: ({ reply, before }) => setHeader(reply, "ETag", `W/${before?.tag}`),
    }),
  ),
  onPath({
    cause: "IFM-08.accepted",
    does: "does not trim If-Match of PUT",
    when: ({ request, relation }) => request.method === "PUT" && relation === "padded",
    act: answered(412),
  }),
  planted(
    "IFM-22.accepted",
    "locks a customer after a conflict until it was read twice",
    (ran) => (service) => {
      /** Reads since the last conflict. */
      const reads = new Map<string, number>();
      const crowd = new Crowd();
      return {
        async around(request, next) {
          const customer = customerOf(request, service);
          if (customer === undefined) return await next(request);
          const mine = crowd.enter(request.path);
          const stale = headerLines(request, "if-match")[0]?.trim() === customer.formerTags.at(-1);
          const count = reads.get(customer.id);
          if (request.method === "GET" && count !== undefined) reads.set(customer.id, count + 1);
          const current = headerLines(request, "if-match")[0]?.trim() === customer.tag;
          if (request.method === "PUT" && current && count === 1) {
            await request.body();
            await Bun.sleep(2); // those of a race are all here by then
            if (!mine.contended) {
              ran();
              mine.leave();
              return service.refuse(423, "locked");
            }
          }
          const reply = await next(request);
          mine.leave();
          if (request.method === "PUT" && stale && reply.status === 412 && !mine.contended)
            reads.set(customer.id, 0);
          else if (request.method !== "GET") reads.delete(customer.id);
          return reply;
        },
      };
    },
  ),
  intercepted({
    cause: "IFM-30.accepted",
    does: "refuses every PATCH with the current tag",
    when: ({ method }, customer, relation) =>
      method === "PATCH" && customer !== undefined && /current|padded/.test(relation),
    status: 409,
  }),
  intercepted({
    cause: "IFM-40.accepted",
    does: "refuses every DELETE with the current tag",
    when: ({ method }, customer, relation) =>
      method === "DELETE" && customer !== undefined && /current|padded/.test(relation),
    status: 409,
  }),
];
