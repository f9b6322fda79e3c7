/** IFM: what is taken for If-Match where it is missing or blank (3, 4.2, 4.3, 7). */
import { asCurrent, customerOf, type Fault, instead, withIfMatch } from "../../fault.ts";
import { headerLines, type Request } from "../../service/http-socket.ts";
import { isWrite } from "../../service/seams.ts";
import { as, every, on, write } from "../../turn.ts";
import { RULES, withoutIfMatch } from "./refusals.ts";

const first = (request: Request) => headerLines(request, "if-match")[0];

export const STAND_IN_FAULTS: Fault[] = [
  {
    id: "empty-if-match-applied",
    rule: "IFM-05",
    does: "takes an If-Match without text for consent: if (header === undefined) refuse",
    plant: asCurrent((request) => first(request)?.replaceAll(" ", "") === ""),
  },
  {
    id: "blank-if-match-applied",
    rule: "IFM-06",
    does: "takes an If-Match with a tab in it for consent: its trim knows spaces alone",
    plant: asCurrent((request) => /^[ \t]*\t[ \t]*$/.test(first(request) ?? "")),
  },
  {
    id: "blank-answered-412",
    rule: "IFM-06",
    does: "compares a blank If-Match instead of missing it",
    plant: instead("isMissing", (_sound, sent) => sent === undefined),
  },
  ...(["If-Unmodified-Since", "X-If-Match", "ETag", "If-None-Match"] as const).map(
    (name): Fault => ({
      id: `${name.toLowerCase()}-stands-in`,
      rule: "IFM-21",
      does: `takes ${name} where If-Match is missing`,
      plant: asCurrent(
        (request) =>
          isWrite(request) && withoutIfMatch(request) && headerLines(request, name.toLowerCase()).length > 0,
      ),
    }),
  ),
  {
    id: "query-parameter-stands-in",
    rule: "IFM-21",
    does: "takes the tag from the query where If-Match is missing",
    plant: asCurrent(
      (request) =>
        isWrite(request) && withoutIfMatch(request) && /(^|&)(if-match|etag|version)=/i.test(request.query),
    ),
  },
  {
    id: "conflict-locks-customer",
    rule: "IFM-22",
    does: "locks a customer for a while after a conflict",
    plant: (ran) => (service) => {
      const locked = new Map<string, number>();
      return {
        async around(request, next) {
          const id = customerOf(request, service)?.id;
          if (id === undefined || request.method !== "PUT") return await next(request);
          if ((locked.get(id) ?? 0) > 0 && headerLines(request, "if-match").length > 0) {
            locked.set(id, (locked.get(id) ?? 0) - 1);
            const reply = await next(withIfMatch(request, '"never"'));
            ran();
            return reply.status === 412 ? { ...reply, status: 423 } : reply;
          }
          const reply = await next(request);
          if (reply.status === 412) locked.set(id, 1);
          return reply;
        },
      };
    },
  },
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-blank-if-match-applied`,
      rule: method === "PATCH" ? "IFM-33" : "IFM-43",
      does: `takes a blank If-Match on ${method} for consent`,
      plant: asCurrent(
        (request) =>
          request.method === method &&
          !withoutIfMatch(request) &&
          headerLines(request, "if-match").join("").trim() === "",
      ),
    }),
  ),
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-stale-answered-409`,
      rule: RULES[method].stale,
      does: `answers a stale ${method} with 409`,
      plant: on(write(method, 412)).answers(as(409)),
    }),
  ),
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-missing-answered-400`,
      rule: RULES[method].missing,
      does: `answers a ${method} without If-Match with 400`,
      plant: on(write(method, 428), ({ request }) => withoutIfMatch(request)).answers(as(400)),
    }),
  ),
  {
    id: "refusals-alternate",
    rule: "PRB-02",
    comesAndGoes: true,
    does: "answers every third conflict with 409: two code paths, one of them old",
    plant: (ran) =>
      on(write("PUT", 412), every(3)).answers(({ customer, service }) =>
        service.refuse(409, "conflict", [["ETag", customer?.tag ?? ""]]),
      )(ran),
  },
];
