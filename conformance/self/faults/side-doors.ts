/** The rule is kept at the front door, and another way in has been forgotten. */
import {
  accepting,
  customerOf,
  deciding,
  type Fault,
  membersOf,
  type Plant,
  replying,
  requesting,
  withIfMatch,
} from "../fault.ts";
import { headerLines, type Request, setHeader } from "../service/http-socket.ts";
import type { Service } from "../service/service.ts";
import { bare } from "./comparison.ts";

const asJson = (request: Request): boolean =>
  request.method === "PATCH" && headerLines(request, "content-type").join("").trim() === "application/json";

const withoutIfMatch = (request: Request, service: Service): boolean =>
  headerLines(request, "if-match").length === 0 && customerOf(request, service) !== undefined;

const asCurrent = (request: Request, service: Service): Request =>
  withIfMatch(request, customerOf(request, service)?.tag);

/** Takes the token from the body where If-Match is missing. */
const fromBody =
  (method: string, member: string, form: (tag: string) => unknown): Plant =>
  (ran) =>
  (service) => ({
    async around(request, next) {
      const customer = customerOf(request, service);
      if (request.method !== method || customer === undefined || !withoutIfMatch(request, service))
        return await next(request);
      if ((await membersOf(request))[member] !== form(customer.tag)) return await next(request);
      ran();
      return await next(asCurrent(request, service));
    },
  });

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
    plant: requesting((request, service) => asJson(request) && withoutIfMatch(request, service), asCurrent),
  },
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-x-if-match-stands-in`,
      rule: method === "PATCH" ? "IFM-32" : "IFM-42",
      does: `takes X-If-Match for If-Match on ${method}`,
      plant: requesting(
        (request, service) =>
          request.method === method &&
          withoutIfMatch(request, service) &&
          headerLines(request, "x-if-match").length > 0,
        asCurrent,
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
    id: "patch-body-version-stands-in",
    rule: "IFM-32",
    does: "takes a member version of the body of PATCH, a number, where If-Match is missing",
    deployment: { tag: (version) => `"${version}"` },
    plant: fromBody("PATCH", "version", (tag) => Number(bare(tag))),
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
    plant: deciding("mint", (_sound, ran) => (_version, _before, { formerTags, id }) => {
      if (formerTags.length >= 50) ran();
      return `"w${formerTags.length % 50}-${id.slice(0, 4)}"`;
    }),
  },
  {
    id: "gzip-weakens-answered-tag",
    rule: "ENV-02",
    does: "stands behind a proxy that weakens the tag on the 204 of PUT where gzip is accepted",
    plant: replying(
      (reply, request) =>
        request.method === "PUT" &&
        reply.status === 204 &&
        headerLines(request, "accept-encoding").join(",").includes("gzip"),
      (reply, request, service) => setHeader(reply, "ETag", `W/${customerOf(request, service)?.tag}`),
    ),
  },
];
