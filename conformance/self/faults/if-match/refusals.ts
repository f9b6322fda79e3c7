/** IFM: 428 and 412, and what they leave behind (3, 4.2, 4.3, 7). */
import { accepting, asCurrent, deciding, type Fault, type Plant } from "../../fault.ts";
import { headerLines, type Request } from "../../service/http-socket.ts";
import { trimBlanks } from "../../service/seams.ts";
import { isThere, on, refused, spoiling, tagged, untagged, weakened, write } from "../../turn.ts";

const METHODS = ["PUT", "PATCH", "DELETE"] as const;

/** The rule of each method for a stale tag, no tag, and the tag of a refusal. */
export const RULES = {
  PUT: { stale: "IFM-03", missing: "IFM-04", tagOf412: "IFM-07" },
  PATCH: { stale: "IFM-31", missing: "IFM-32", tagOf412: "IFM-34" },
  DELETE: { stale: "IFM-41", missing: "IFM-42", tagOf412: "IFM-44" },
} as const;

export const withoutIfMatch = (request: Request) => headerLines(request, "if-match").length === 0;

/** Refuses, and applies all the same. */
const refusedButApplied = (method: string, status: number): Plant =>
  deciding("commit", (_sound, ran) => async ({ request, bodyRead, decide, apply }) => {
    await bodyRead();
    const refusal = decide();
    if (refusal === undefined) return apply();
    if (request.method === method && refusal.status === status) {
      ran();
      apply();
    }
    return refusal;
  });

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
    plant: asCurrent((request) => request.method === method && withoutIfMatch(request)),
  },
  {
    id: `${method.toLowerCase()}-412-without-etag`,
    rule: RULES[method].tagOf412,
    does: `answers a stale ${method} with 412 but without the current tag`,
    plant: on(write(method, 412)).answers(untagged),
  },
  {
    id: `${method.toLowerCase()}-412-but-applied`,
    rule: RULES[method].stale,
    does: `answers a stale ${method} with 412 and applies it all the same`,
    plant: refusedButApplied(method, 412),
  },
]);

export const REFUSAL_FAULTS: Fault[] = [
  ...perMethod,
  {
    id: "patch-missing-400",
    rule: "IFM-32",
    does: "answers every PATCH whose If-Match is missing or blank with 400",
    plant: on(write("PATCH", 428)).answers(refused(400)),
  },
  {
    id: "put-428-but-applied",
    rule: "IFM-04",
    does: "answers a PUT without If-Match with 428 and applies it all the same",
    plant: refusedButApplied("PUT", 428),
  },
  {
    id: "412-echoes-sent-tag",
    rule: "IFM-07",
    does: "puts the tag that was sent, not the current one, on 412",
    plant: on(write(undefined, 412)).answers(
      tagged(({ request }) => trimBlanks(headerLines(request, "if-match")[0] ?? '""')),
    ),
  },
  {
    id: "412-weak-etag",
    rule: "IFM-07",
    does: "weakens the tag on 412",
    plant: on(write(undefined, 412)).answers(tagged(({ customer }) => `W/${customer?.tag}`)),
  },
  {
    id: "stale-answered-204",
    rule: "IFM-03",
    does: "answers a stale PUT with 204 and drops it silently",
    plant: on(write("PUT", 412)).answers(({ reply }) => ({
      status: 204,
      headers: reply.headers.filter(([name]) => !/^content/i.test(name)),
    })),
  },
  ...([409, 400, 403, 500] as const).map(
    (status): Fault => ({
      id: `stale-answered-${status}`,
      rule: "IFM-03",
      does: `answers a stale write with ${status}`,
      plant: on(write(undefined, 412)).answers(refused(status)),
    }),
  ),
  ...([400, 403, 412] as const).map(
    (status): Fault => ({
      id: `missing-answered-${status}`,
      rule: "IFM-04",
      does: `answers a write without If-Match with ${status}`,
      plant: on(write(undefined, 428), ({ request }) => withoutIfMatch(request)).answers(refused(status)),
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
    plant: accepting((sent, { formerTags }, { method }) => method === "PATCH" && formerTags.includes(sent)),
  },
  {
    id: "stale-with-current-values-accepted",
    rule: "IFM-03",
    does: "answers a stale PUT with 204 when it would change nothing",
    plant: on(write("PUT", 412), ({ body, customer, service: { deployment } }) => {
      const { name, email } = deployment.members;
      return body[name] === customer?.name && body[email] === customer?.email;
    }).answers(({ customer }) => ({ status: 204, headers: [["ETag", customer?.tag ?? ""]] })),
  },
  ...(["PATCH", "DELETE"] as const).flatMap((method): Fault[] => [
    {
      id: `${method.toLowerCase()}-never-matches`,
      rule: method === "PATCH" ? "IFM-30" : "IFM-40",
      does: `compares the token of ${method} with the one in its column, quotes on one side only`,
      plant: on(write(method), isThere).answers(({ service, before, customer }) => {
        Object.assign(customer ?? {}, before);
        return service.refuse(412, "precondition-failed", [["ETag", before?.tag ?? ""]]);
      }),
    },
    {
      id: `${method.toLowerCase()}-412-weakened`,
      rule: RULES[method].tagOf412,
      does: `weakens the tag on the 412 of ${method} alone`,
      plant: on(write(method, 412), ({ met }) => !met).answers(weakened),
    },
  ]),
  {
    id: "412-tag-of-a-replica",
    rule: "IFM-07",
    does: "answers a 412 from a replica that has not seen the last write",
    plant: on(write(undefined, 412), ({ before }) => (before?.formerTags.length ?? 0) > 0).answers(
      tagged(({ before }) => before?.formerTags.at(-1)),
    ),
  },
  ...METHODS.map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-412-changes-status`,
      rule: RULES[method].stale,
      does: `marks the customer as in conflict where it answers a ${method} with 412`,
      plant: on(write(method, 412), isThere).answers(spoiling(() => ({ status: "Conflict" }))),
    }),
  ),
  {
    id: "patch-428-stores-email",
    rule: "IFM-32",
    does: "notes the email of a PATCH before it looks for If-Match",
    plant: on(write("PATCH", 428), isThere, ({ body }) => typeof body["Email"] === "string").answers(
      spoiling((_customer, { body }) => ({ email: String(body["Email"]) })),
    ),
  },
  ...(["PUT", "PATCH"] as const).map(
    (method): Fault => ({
      id: `refused-${method.toLowerCase()}-stores-status`,
      rule: method === "PUT" ? "IFM-23" : "IFM-36",
      mode: "full",
      does: `saves the status that a ${method} names by a statement of its own, before the row is compared`,
      plant: on(write(method, 412), isThere, ({ body }) => "Status" in body).answers(
        spoiling((_customer, { body }) => ({ status: String(body["Status"]) })),
      ),
    }),
  ),
];
