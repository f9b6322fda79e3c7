/** Reads that carry what many clients and proxies send, or that come before the first update, and meet other code. */
import { customerOf, type Fault, has, isRead, type Plant, requesting } from "../../fault.ts";
import { headerLines, type Request } from "../../service/http-socket.ts";
import type { Caller } from "../../service/seams.ts";
import type { Service } from "../../service/service.ts";
import { answered, by, on, projectedRead, read, showing, tagged, untagged } from "../../turn.ts";
import { privileged } from "../callers/tenants.ts";

type When = (request: Request, service: Service) => boolean;

const isOverHttp10: When = ({ version }) => version === "1.0";
export const isFresh: When = (request, service) => customerOf(request, service)?.formerTags.length === 0;

type Forgotten = "policy" | "tenant" | "fields";

/** Reads that take a way on which something was forgotten. */
const WAYS: readonly (readonly [id: string, reads: string, when: When, ...forgotten: Forgotten[]])[] = [
  [
    "no-cache",
    "with Cache-Control: no-cache",
    has("cache-control", "no-cache"),
    "policy",
    "tenant",
    "fields",
  ],
  ["brotli", "that are sent compressed with br", has("accept-encoding", "br"), "policy", "fields"],
  ["range", "of a part", has("range"), "policy", "fields"],
  ["hal", "as application/hal+json", has("accept", "hal+json"), "tenant", "fields"],
  ["local", "that a proxy says to come from this machine", has("x-forwarded-for", "127.0.0.1"), "policy"],
  ["http10", "over HTTP/1.0", isOverHttp10, "policy", "tenant"],
];

/** The policy looks at such reads as if they were the owner's. */
export const unguarded = (caller: Caller | undefined, when: When): Plant =>
  requesting(
    (request, service) => isRead(request) && service.caller(request) === caller && when(request, service),
    privileged,
  );

/** The query says nothing to such reads. */
export const unshaped = (when: When): Plant =>
  requesting(
    (request, service) => isRead(request) && /(^|&)fields=/.test(request.query) && when(request, service),
    (request) => ({ ...request, query: "" }),
  );

/** Unknown names beside known ones are left out in such reads. */
const forgiving = (when: When): Plant =>
  requesting(
    (request, service) => isRead(request) && /kitunknown/.test(request.query) && when(request, service),
    (request) => ({ ...request, query: "fields=name" }),
  );

const FORGETS: Record<
  Forgotten,
  readonly [name: string, rule: Fault["rule"], does: string, plant: (when: When) => Plant]
> = {
  policy: ["limited-reads", "AUT-15", "has no field policy for", (when) => unguarded("limited", when)],
  tenant: ["other-tenant-reads", "AUT-08", "forgets the tenant in", (when) => unguarded("other", when)],
  fields: ["fields-ignored", "FLD-01", "shows the whole to", unshaped],
};

export const USUAL_READ_FAULTS: Fault[] = [
  ...WAYS.flatMap(([id, reads, when, ...forgotten]) =>
    forgotten.map((what): Fault => {
      const [name, rule, does, plant] = FORGETS[what];
      return { id: `${name}-${id}`, rule, does: `${does} reads ${reads}`, plant: plant(when) };
    }),
  ),
  {
    id: "limited-reads-by-role-header",
    rule: "AUT-15",
    does: "takes the role from X-User-Role, which a gateway sets, and which it lets through from outside",
    plant: unguarded("limited", has("x-user-role", "admin")),
  },
  {
    id: "limited-reads-by-original-url",
    rule: "AUT-15",
    does: "judges the request line, and carries out X-Original-URL",
    plant: requesting(
      (request, service) =>
        isRead(request) && service.caller(request) === "limited" && has("x-original-url")(request),
      (request, service) => ({
        ...privileged(request, service),
        query: headerLines(request, "x-original-url").join().split("?")[1] ?? "",
      }),
    ),
  },
  {
    id: "limited-reads-by-post",
    rule: "AUT-15",
    does: "turns a POST that names GET in X-HTTP-Method-Override into one after the policy was applied",
    plant: requesting(
      (request, service) =>
        request.method === "POST" &&
        service.caller(request) === "limited" &&
        has("x-http-method-override", "get")(request),
      (request, service) => ({ ...privileged(request, service), method: "GET" }),
    ),
  },
  {
    id: "limited-reads-by-debug",
    rule: "AUT-04",
    does: "shows everything to anyone who asks with debug=true",
    plant: unguarded("limited", ({ query }) => query.includes("debug=true")),
  },
  {
    id: "other-tenant-reads-by-callback",
    rule: "AUT-08",
    does: "answers JSONP by code that knows no tenant",
    plant: unguarded("other", ({ query }) => query.includes("callback=")),
  },
  {
    id: "anyone-reads-the-name",
    rule: "AUT-12",
    does: "has let the sign-in page look up names without credentials",
    plant: unguarded(undefined, ({ query }) => query === "fields=name"),
  },
  {
    id: "fields-ignored-when-pretty",
    rule: "FLD-01",
    does: "prints the whole where pretty=true is asked for",
    plant: unshaped(({ query }) => query.includes("pretty=true")),
  },
  {
    id: "limited-shown-status-beside-two",
    rule: "FLD-01",
    does: "adds the status for the limited caller where it asks for more than one field",
    plant: on(read(), by("limited"), ({ request }) => /fields=\w+,\w+$/.test(request.query)).answers(
      showing((body, { customer }) => ({ ...body, Status: customer?.status })),
    ),
  },
  {
    id: "unknown-field-ignored-in-compressed-read",
    rule: "FLD-03",
    does: "answers a compressed read from copies, which it finds by the known names alone",
    plant: forgiving(has("accept-encoding", "gzip")),
  },
  {
    id: "unknown-field-ignored-before-update",
    rule: "FLD-03",
    does: "reads a customer from the event of its create until the first update, and looks at no names there",
    plant: requesting(
      (request, service) =>
        isRead(request) && request.query === "fields=kitunknown" && isFresh(request, service),
      (request) => ({ ...request, query: "fields=name" }),
    ),
  },
  {
    id: "fields-ignored-before-update",
    rule: "FLD-01",
    does: "shows the whole event of the create until the first update",
    plant: unshaped(isFresh),
  },
  {
    id: "other-tenant-reads-before-update",
    rule: "AUT-08",
    does: "finds the tenant of a customer in its history, and none before the first update",
    plant: unguarded("other", isFresh),
  },
  {
    id: "projection-untagged-before-update",
    rule: "ETG-05",
    does: "has no version for projections until the first update",
    plant: on(projectedRead, ({ before }) => before?.formerTags.length === 0).answers(untagged),
  },
  {
    id: "no-cache-tag-of-origin",
    rule: "ETG-05",
    does: "answers no-cache from the origin, whose tags the gateway otherwise rewrites",
    plant: on(answered(200), ({ request }) => has("cache-control", "no-cache")(request)).answers(
      tagged(({ reply }) => `"origin-${reply.headers.find(([name]) => name === "ETag")?.[1].slice(1)}`),
    ),
  },
];
