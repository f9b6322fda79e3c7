/** IFM: 428 and 412, and what they leave behind (3, 4.2, 4.3, 7). */
import {
  accepting,
  customerOf,
  deciding,
  type Fault,
  membersOf,
  replying,
  requesting,
  withIfMatch,
} from "../fault.ts";
import { headerLines, setHeader } from "../service/http-socket.ts";
import { isWrite, trimBlanks } from "../service/seams.ts";

const METHODS = ["PUT", "PATCH", "DELETE"] as const;

/** The rule of each method for a stale tag, no tag, and the tag of a refusal. */
export const RULES = {
  PUT: { stale: "IFM-03", missing: "IFM-04", tagOf412: "IFM-07" },
  PATCH: { stale: "IFM-31", missing: "IFM-32", tagOf412: "IFM-34" },
  DELETE: { stale: "IFM-41", missing: "IFM-42", tagOf412: "IFM-44" },
} as const;

const perMethod = METHODS.flatMap((method): Fault[] => [
  {
    id: `${method.toLowerCase()}-ignores-if-match`,
    rule: RULES[method].stale,
    does: `applies a stale ${method}: If-Match must be there, but is not compared`,
    plant: accepting((_sent, _customer, request) => request.method === method),
  },
  {
    id: `${method.toLowerCase()}-without-if-match-applied`,
    rule: RULES[method].missing,
    does: `applies a ${method} without If-Match`,
    plant: requesting(
      (request, service) =>
        request.method === method &&
        headerLines(request, "if-match").length === 0 &&
        customerOf(request, service) !== undefined,
      (request, service) => withIfMatch(request, customerOf(request, service)?.tag),
    ),
  },
  {
    id: `${method.toLowerCase()}-412-without-etag`,
    rule: RULES[method].tagOf412,
    does: `answers a stale ${method} with 412 but without the current tag`,
    plant: replying(
      (reply, request) => request.method === method && reply.status === 412,
      (reply) => setHeader(reply, "ETag", undefined),
    ),
  },
  {
    id: `${method.toLowerCase()}-412-but-applied`,
    rule: RULES[method].stale,
    does: `answers a stale ${method} with 412 and applies it all the same`,
    plant: deciding("commit", (_sound, ran) => async ({ request, bodyRead, decide, apply }) => {
      await bodyRead();
      const refusal = decide();
      if (refusal === undefined) return apply();
      if (request.method === method && refusal.status === 412) {
        ran();
        apply();
      }
      return refusal;
    }),
  },
]);

export const REFUSAL_FAULTS: Fault[] = [
  ...perMethod,
  {
    id: "patch-missing-400",
    rule: "IFM-32",
    does: "answers every PATCH whose If-Match is missing or blank with 400",
    plant: replying(
      (reply, request) => request.method === "PATCH" && reply.status === 428,
      (_reply, _request, service) => service.refuse(400, "if-match-required"),
    ),
  },
  {
    id: "put-428-but-applied",
    rule: "IFM-04",
    does: "answers a PUT without If-Match with 428 and applies it all the same",
    plant: deciding("commit", (_sound, ran) => async ({ request, bodyRead, decide, apply }) => {
      await bodyRead();
      const refusal = decide();
      if (refusal === undefined) return apply();
      if (request.method === "PUT" && refusal.status === 428) {
        ran();
        apply();
      }
      return refusal;
    }),
  },
  {
    id: "412-echoes-sent-tag",
    rule: "IFM-07",
    does: "puts the tag that was sent, not the current one, on 412",
    plant: replying(
      (reply, request) => isWrite(request) && reply.status === 412,
      (reply, request) => setHeader(reply, "ETag", trimBlanks(headerLines(request, "if-match")[0] ?? '""')),
    ),
  },
  {
    id: "412-weak-etag",
    rule: "IFM-07",
    does: "weakens the tag on 412",
    plant: replying(
      (reply, request) => isWrite(request) && reply.status === 412,
      (reply, request, service) => setHeader(reply, "ETag", `W/${customerOf(request, service)?.tag}`),
    ),
  },
  {
    id: "stale-answered-204",
    rule: "IFM-03",
    does: "answers a stale PUT with 204 and drops it silently",
    plant: replying(
      (reply, request) => request.method === "PUT" && reply.status === 412,
      (reply) => ({ status: 204, headers: reply.headers.filter(([name]) => !/^content/i.test(name)) }),
    ),
  },
  ...([409, 400, 403, 500] as const).map(
    (status): Fault => ({
      id: `stale-answered-${status}`,
      rule: "IFM-03",
      does: `answers a stale write with ${status}`,
      plant: replying(
        (reply, request) => isWrite(request) && reply.status === 412,
        (_reply, _request, service) => service.refuse(status, "refused"),
      ),
    }),
  ),
  ...([400, 403, 412] as const).map(
    (status): Fault => ({
      id: `missing-answered-${status}`,
      rule: "IFM-04",
      does: `answers a write without If-Match with ${status}`,
      plant: replying(
        (reply, request) => reply.status === 428 && headerLines(request, "if-match").length === 0,
        (_reply, _request, service) => service.refuse(status, "refused"),
      ),
    }),
  ),
  {
    id: "previous-tag-honoured",
    rule: "IFM-03",
    does: "honours the tag before the current one as well, as a grace",
    plant: accepting((sent, customer) => customer.formerTags.at(-1) === sent),
  },
  {
    id: "stale-disjoint-patch-merged",
    rule: "IFM-31",
    does: "merges a stale PATCH when the fields it changes were not changed since",
    plant: (ran) => () => {
      const lastMethod = new Map<string, string>();
      return {
        isCurrent(sent, customer, request) {
          if (sent === customer.tag) {
            lastMethod.set(customer.id, request.method);
            return true;
          }
          const merged = request.method === "PATCH" && customer.formerTags.includes(sent);
          if (merged) ran();
          return merged;
        },
      };
    },
  },
  {
    id: "stale-with-current-values-accepted",
    rule: "IFM-03",
    does: "answers a stale PUT with 204 when it would change nothing",
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        const customer = customerOf(request, service);
        if (request.method !== "PUT" || reply.status !== 412 || customer === undefined) return reply;
        const body = await membersOf(request);
        const { name, email } = service.deployment.members;
        if (body[name] !== customer.name || body[email] !== customer.email) return reply;
        ran();
        return { status: 204, headers: [["ETag", customer.tag]] };
      },
    }),
  },
];
