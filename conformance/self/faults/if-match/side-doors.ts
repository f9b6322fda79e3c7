/** The rule is kept at the front door, and another way in has been forgotten. */
import {
  accepting,
  asCurrent,
  customerOf,
  type Fault,
  type Plant,
  requesting,
  withIfMatch,
} from "../../fault.ts";
import { headerLines, type Request } from "../../service/http-socket.ts";
import { on, tagged, type When, write } from "../../turn.ts";
import { wrapping } from "../chains-and-bodies.ts";
import { bare } from "./comparison.ts";
import { withoutIfMatch } from "./refusals.ts";

const asJson = (request: Request): boolean =>
  request.method === "PATCH" && headerLines(request, "content-type").join("").trim() === "application/json";

const acceptingGzip: When = ({ request }) =>
  headerLines(request, "accept-encoding").join(",").includes("gzip");

/** Takes the token from the body where If-Match is missing. */
const fromBody = (method: string, member: string, form: (tag: string) => unknown): Plant =>
  on(
    (turn) =>
      write(method, 428)(turn) &&
      withoutIfMatch(turn.request) &&
      turn.customer !== undefined &&
      turn.body[member] === form(turn.customer.tag),
  ).answers(({ request, customer, send }) => send(withIfMatch(request, customer?.tag)));

export const SIDE_DOOR_FAULTS: Fault[] = [
  {
    id: "patch-as-json-not-compared",
    rule: "IFM-31",
    does: "compares If-Match in its handler of merge patches and not in that of plain JSON",
    plant: accepting((_sent, _customer, request) => asJson(request)),
  },
  {
    id: "patch-as-json-needs-no-if-match",
    rule: "IFM-32",
    does: "asks for If-Match in its handler of merge patches and not in that of plain JSON",
    plant: asCurrent((request) => asJson(request) && withoutIfMatch(request)),
  },
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-x-if-match-stands-in`,
      rule: method === "PATCH" ? "IFM-32" : "IFM-42",
      does: `takes X-If-Match for If-Match on ${method}`,
      plant: asCurrent(
        (request) =>
          request.method === method &&
          withoutIfMatch(request) &&
          headerLines(request, "x-if-match").length > 0,
      ),
    }),
  ),
  {
    id: "body-etag-stands-in",
    rule: "IFM-21",
    does: "takes a member etag of the body where If-Match is missing",
    plant: fromBody("PUT", "etag", (tag) => tag),
  },
  {
    id: "body-row-version-stands-in",
    rule: "IFM-21",
    does: "takes a member rowVersion of the body, without quotes, where If-Match is missing",
    plant: fromBody("PUT", "rowVersion", bare),
  },
  {
    id: "null-version-is-not-compared",
    rule: "IFM-21",
    does: "merges the body into an entity, and takes one whose version is null for a new one",
    plant: fromBody("PUT", "version", () => null),
  },
  {
    id: "patch-body-version-stands-in",
    rule: "IFM-32",
    does: "takes a member version of the body of PATCH, a number, where If-Match is missing",
    deployment: { tag: (version) => `"${version}"` },
    plant: fromBody("PATCH", "version", (tag) => Number(bare(tag))),
  },
  {
    id: "get-with-an-override-not-compared",
    rule: "IFM-46",
    does: "takes GET with X-HTTP-Method-Override: DELETE for a DELETE, and asks only whether If-Match is there",
    plant: requesting(
      (request, service) =>
        request.method === "GET" &&
        headerLines(request, "x-http-method-override").join().trim() === "DELETE" &&
        !withoutIfMatch(request) &&
        customerOf(request, service) !== undefined,
      (request, service) => withIfMatch({ ...request, method: "DELETE" }, customerOf(request, service)?.tag),
    ),
  },
  {
    id: "put-with-an-override-not-compared",
    rule: "IFM-46",
    does: "takes PUT with X-HTTP-Method-Override: DELETE for a DELETE, and asks only whether If-Match is there",
    plant: requesting(
      (request, service) =>
        request.method === "PUT" &&
        headerLines(request, "x-http-method-override").join().trim() === "DELETE" &&
        !withoutIfMatch(request) &&
        customerOf(request, service) !== undefined,
      (request, service) => withIfMatch({ ...request, method: "DELETE" }, customerOf(request, service)?.tag),
    ),
  },
  {
    id: "first-tag-honoured",
    rule: "IFM-18",
    does: "honours the tag that a customer was created with, once others have gone",
    plant: accepting(
      (sent, { formerTags }, request) =>
        request.method === "PUT" && formerTags.length > 3 && sent === formerTags[0],
    ),
  },
  {
    id: "tag-repeats-after-50",
    mode: "full",
    rule: "ETG-15",
    does: "counts the writes of a customer modulo fifty",
    plant: wrapping(50),
  },
  {
    id: "gzip-weakens-answered-tag",
    rule: "ENV-02",
    does: "stands behind a proxy that weakens the tag on the 204 of PUT where gzip is accepted",
    plant: on(write("PUT", 204), acceptingGzip).answers(tagged(({ customer }) => `W/${customer?.tag}`)),
  },
];
