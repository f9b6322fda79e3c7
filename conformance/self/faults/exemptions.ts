/** Requests that a service forgets to check: the precondition holds for ordinary requests and not for these. */
import { accepting, customerOf, type Fault, has, type Plant, requesting, withIfMatch } from "../fault.ts";
import { headerLines, type Reply, type Request } from "../service/http-socket.ts";
import { type Caller, type Customer, isWrite } from "../service/seams.ts";
import type { Service } from "../service/service.ts";
import { isThere, on, refused, untagged, type When, write } from "../turn.ts";

const RULES = { PUT: "IFM-23", PATCH: "IFM-36", DELETE: "IFM-46" } as const;
type Method = keyof typeof RULES;
const METHODS = ["PUT", "PATCH", "DELETE"] as const;

type Row = readonly [
  id: string,
  method: Method,
  does: string,
  when: (request: Request, service: Service) => boolean,
];

const header = (request: Request, name: string) => headerLines(request, name).join().toLowerCase();
/** Sent by the caller who has made the customer. */
const madeBy = (request: Request, service: Service, owner: Caller) =>
  service.caller(request) === owner && customerOf(request, service)?.owner === owner;
const length = (request: Request) => Number(header(request, "content-length").trim());

/** What a short run does not ask. */
const SELDOM_ASKED: readonly (readonly [...row: Row, rule: Fault["rule"]])[] = [
  [
    "delete-after-a-conflict-unchecked",
    "DELETE",
    "shows a conflict once, and takes what comes without a tag after it for consent",
    (request) => header(request, "if-match").trim() === "" && request.connection.conflicts.has(request.path),
    RULES.DELETE,
  ],
  [
    "often-written-delete-unchecked",
    "DELETE",
    "keeps the last twelve versions of a customer, and finds no first one to compare beyond them",
    (request, service) =>
      header(request, "if-match").trim() === "" &&
      (customerOf(request, service)?.formerTags.length ?? 0) > 12,
    "IFM-47",
  ],
  [
    "owner-put-unchecked",
    "PUT",
    "lets a user write what he has made himself, and compares what an administrator has",
    (request, service) => madeBy(request, service, "limited"),
    RULES.PUT,
  ],
  [
    "new-tenant-patch-unchecked",
    "PATCH",
    "has left one tenant on the allowance of its migration, by which If-Match may be missing",
    (request, service) => header(request, "if-match").trim() === "" && madeBy(request, service, "other"),
    RULES.PATCH,
  ],
  [
    "owner-delete-unchecked",
    "DELETE",
    "lets a user delete what he has made himself, whatever has become of it",
    (request, service) => madeBy(request, service, "limited"),
    RULES.DELETE,
  ],
];

const ROWS: readonly Row[] = [
  [
    "put-of-140000-bytes-unchecked",
    "PUT",
    "streams bodies of more than 128 KiB past the filter that checks",
    (request) => length(request) > 131_072,
  ],
  [
    "vendor-put-unchecked",
    "PUT",
    "takes a media type of a vendor by a route of its own, without the check",
    has("content-type", "application/vnd."),
  ],
  [
    "chunked-put-unchecked",
    "PUT",
    "checks a PUT in a filter that chunked bodies bypass",
    has("transfer-encoding", "chunked"),
  ],
  [
    "charset-patch-unchecked",
    "PATCH",
    "routes a PATCH whose media type has a parameter to an older handler without the check",
    has("content-type", "charset"),
  ],
  [
    "limited-delete-unchecked",
    "DELETE",
    "checks the DELETE of one role alone",
    (request, service) => service.caller(request) === "limited",
  ],
  [
    "never-updated-put-unchecked",
    "PUT",
    "has no version to compare before the first update of a customer",
    (request, service) => customerOf(request, service)?.formerTags.length === 0,
  ],
  [
    "connection-that-wrote-unchecked",
    "PUT",
    "keeps a flag of the last check in an object of the connection, and never resets it",
    (request) => request.connection.wrote.has(request.path),
  ],
  [
    "second-request-unchecked",
    "PATCH",
    "parses the headers of the first request of a connection alone",
    ({ connection }) => connection.requests > 0,
  ],
  [
    "http-1-0-unchecked",
    "DELETE",
    "takes HTTP/1.0 for its own health checker",
    ({ version }) => version === "1.0",
  ],
  [
    "untyped-put-unchecked",
    "PUT",
    "binds a body without a media type by an older code path",
    (request) => header(request, "content-type") === "",
  ],
  [
    "form-put-unchecked",
    "PUT",
    "checks what its JSON filter reads, and binds a form, which curl sends, by another one",
    has("content-type", "x-www-form-urlencoded"),
  ],
  [
    "big-patch-unchecked",
    "PATCH",
    "streams bodies above a kilobyte past its filters",
    (request) => length(request) > 1000,
  ],
  [
    "delete-with-body-unchecked",
    "DELETE",
    "takes a DELETE with a body for a bulk job",
    (request) => length(request) > 0,
  ],
  [
    "idempotency-key-unchecked",
    "PUT",
    "trusts an idempotency key to prevent a second write",
    has("idempotency-key"),
  ],
  [
    "cookie-unchecked",
    "DELETE",
    "checks API clients and not its own pages, which send a cookie",
    has("cookie"),
  ],
  [
    "local-address-unchecked",
    "PATCH",
    "takes X-Forwarded-For: 127.0.0.1 for a job of its own",
    has("x-forwarded-for", "127.0.0.1"),
  ],
  [
    "chunked-patch-unchecked",
    "PATCH",
    "checks a PATCH in a filter that chunked bodies bypass",
    has("transfer-encoding", "chunked"),
  ],
  [
    "charset-put-unchecked",
    "PUT",
    "routes a PUT whose media type has a parameter to an older handler without the check",
    has("content-type", "charset"),
  ],
  [
    "expecting-put-unchecked",
    "PUT",
    "forgets the check where the client waits for 100 Continue",
    has("expect"),
  ],
  [
    "ajax-put-unchecked",
    "PUT",
    "exempts its own front end, which it knows by X-Requested-With",
    has("x-requested-with"),
  ],
  [
    "preferring-put-unchecked",
    "PUT",
    "routes writes with Prefer to a handler without the check",
    has("prefer"),
  ],
  [
    "forced-delete-unchecked",
    "DELETE",
    "skips the check where the query says force=true",
    ({ query }) => /(^|&)force=(true|1)/.test(query),
  ],
  [
    "upserting-put-unchecked",
    "PUT",
    "creates or replaces without a check where the query says upsert=true",
    ({ query }) => /(^|&)upsert=(true|1)/.test(query),
  ],
  [
    "localized-put-unchecked",
    "PUT",
    "checks the calls of services, and not those of its pages, which say Accept-Language",
    has("accept-language"),
  ],
  [
    "traced-patch-unchecked",
    "PATCH",
    "takes what carries a trace of its mesh for a call from within, which has been checked",
    has("traceparent"),
  ],
  [
    "trailers-delete-unchecked",
    "DELETE",
    "waits for If-Match among the trailers where the client takes some, and never looks there",
    has("te", "trailers"),
  ],
  [
    "hop-by-hop-put-unchecked",
    "PUT",
    "drops what Connection names, and misses nothing where that was If-Match",
    has("connection", "if-match"),
  ],
  ["trusting-put-unchecked", "PUT", "skips the check where X-Force is sent", has("x-force")],
  [
    "chunked-delete-unchecked",
    "DELETE",
    "checks a DELETE in a filter that chunked bodies bypass",
    has("transfer-encoding", "chunked"),
  ],
  [
    "third-request-unchecked",
    "PUT",
    "resets its flag of a checked connection after two requests",
    ({ connection }) => connection.requests > 1,
  ],
  [
    "tenth-request-unchecked",
    "PUT",
    "checks the first nine requests of a connection, and takes what lives longer for its own pool",
    ({ connection }) => connection.requests >= 9,
  ],
  [
    "after-100-continue-unchecked",
    "DELETE",
    "keeps the connection in another state after 100 Continue, in which no filter runs",
    (request) => request.connection.continued && headerLines(request, "expect").length === 0,
  ],
  [
    "whole-url-unchecked",
    "PATCH",
    "matches its rules on the request line, and misses one with the whole URL",
    ({ target }) => target.startsWith("http"),
  ],
  [
    "bare-question-mark-unchecked",
    "PUT",
    "matches its rules on the address to its end, and misses one with a bare question mark",
    ({ target }) => target.endsWith("?"),
  ],
  [
    "small-letters-unchecked",
    "PUT",
    "knows If-Match by one spelling in the filter that refuses blank ones",
    ({ headers }) => headers.some(([name]) => name === "if-match"),
  ],
  [
    "capitals-unchecked",
    "PATCH",
    "knows If-Match by one spelling in the filter that compares",
    ({ headers }) => headers.some(([name]) => name === "IF-MATCH"),
  ],
  [
    "unmodified-since-unchecked",
    "PUT",
    "takes If-Unmodified-Since for a precondition, and does not look at it",
    has("if-unmodified-since"),
  ],
  [
    "none-match-unchecked",
    "PATCH",
    "takes If-None-Match for a precondition of the write",
    has("if-none-match"),
  ],
  ["webdav-if-unchecked", "DELETE", "honours the If header of WebDAV in place of If-Match", has("if")],
  [
    "huge-put-unchecked",
    "PUT",
    "spools bodies above 64 kB to disk, past its filters",
    (request) => length(request) > 65_536,
  ],
  ...METHODS.map(
    (method): Row => [
      `${method.toLowerCase()}-in-capitals-unchecked`,
      method,
      `guards the address as given out: a ${method} with the id in capitals is not checked`,
      ({ path }) => /[A-F]/.test(path.slice(-36)),
    ],
  ),
  ...(["PUT", "PATCH"] as const).map(
    (method): Row => [
      `limited-${method.toLowerCase()}-unchecked`,
      method,
      `checks the ${method} of one role alone`,
      (request, service) => service.caller(request) === "limited",
    ],
  ),
  [
    "first-put-of-limited-unchecked",
    "PUT",
    "reads the version of what one role writes from a history that is empty at first",
    (request, service) =>
      service.caller(request) === "limited" && customerOf(request, service)?.formerTags.length === 0,
  ],
  ...(["PATCH", "DELETE"] as const).map(
    (method): Row => [
      `never-updated-${method.toLowerCase()}-unchecked`,
      method,
      `has no version to compare on the ${method} of a customer that was never updated`,
      (request, service) => customerOf(request, service)?.formerTags.length === 0,
    ],
  ),
];

/** Writes that do not carry the current tag, as if they did. */
function unchecked(when: Row[3], change = (request: Request): Request => request): Plant {
  return requesting(
    (request, service) => {
      const at = change(request);
      const customer = customerOf(at, service);
      if (customer === undefined || customer.removed || !isWrite(at)) return false;
      return header(at, "if-match").trim() !== customer.tag.toLowerCase() && when(request, service);
    },
    (request, service) => withIfMatch(change(request), customerOf(change(request), service)?.tag),
  );
}

/** A router that takes other addresses, or other methods, for the one that it checks. */
const ALIASES: readonly (readonly [id: string, Method, does: string, (request: Request) => Request])[] = [
  [
    "capital-path-unchecked",
    "PUT",
    "routes without regard to case, and checks by a pattern with regard to it",
    (request) => ({ ...request, path: request.path.replace("/Customers/", "/customers/") }),
  ],
  [
    "dot-segment-unchecked",
    "PUT",
    "removes dot segments of the path behind its check",
    (request) => ({ ...request, path: request.path.replace("/./", "/") }),
  ],
  [
    "trailing-slash-unchecked",
    "DELETE",
    "routes with or without a slash at the end, and checks without one",
    (request) => ({ ...request, path: request.path.replace(/\/$/, "") }),
  ],
  ...(["PUT", "PATCH", "DELETE"] as const).map(
    (method) =>
      [
        `override-${method.toLowerCase()}-unchecked`,
        method,
        `takes POST with X-HTTP-Method-Override: ${method} for ${method}, behind its check`,
        (request: Request) =>
          header(request, "x-http-method-override").trim() === method.toLowerCase() &&
          request.method === "POST"
            ? { ...request, method }
            : request,
      ] as const,
  ),
];

const UNAPPLIED = (request: Request, changed: Request) =>
  changed.path !== request.path || changed.method !== request.method;

/** A lenient comparison that stands on one path of the code alone. */
const LENIENT: readonly (readonly [
  id: string,
  Method,
  does: string,
  when: (request: Request, service: Service) => boolean,
  wrongly: (sent: string, customer: Customer) => boolean,
])[] = [
  [
    "chunked-star-taken",
    "PUT",
    "honours * in the handler of chunked bodies",
    has("transfer-encoding", "chunked"),
    (sent) => sent === "*",
  ],
  [
    "kept-alive-weak-taken",
    "PUT",
    "compares weakly on a connection that it has answered on before",
    ({ connection }) => connection.requests > 0,
    (sent, { tag }) => sent === `W/${tag}`,
  ],
  [
    "kept-alive-list-taken",
    "DELETE",
    "splits lists on a connection that it has answered on before",
    ({ connection }) => connection.requests > 0,
    (sent, { tag }) => sent.includes(",") && sent.includes(tag),
  ],
  [
    "http-1-0-list-taken",
    "PATCH",
    "splits lists for old proxies, which speak HTTP/1.0",
    ({ version }) => version === "1.0",
    (sent, { tag }) => sent.includes(",") && sent.includes(tag),
  ],
  [
    "limited-star-taken",
    "DELETE",
    "lets one role say *",
    (request, service) => service.caller(request) === "limited",
    (sent) => sent === "*",
  ],
  [
    "capitals-weak-taken",
    "DELETE",
    "compares weakly where the id is in capitals",
    ({ path }) => /[A-F]/.test(path.slice(-36)),
    (sent, { tag }) => sent === `W/${tag}`,
  ],
  [
    "never-updated-unquoted-taken",
    "PUT",
    "compares the first tag of a customer without its quotes",
    (request, service) => customerOf(request, service)?.formerTags.length === 0,
    (sent, { tag }) => sent === tag.slice(1, -1),
  ],
];

/** 412 without the tag in one branch of the code. */
const UNTAGGED: readonly (readonly [
  id: string,
  rule: string,
  does: string,
  (sent: string, customer: Customer | undefined) => boolean,
])[] = [
  [
    "unknown-412-untagged",
    "IFM-11",
    "looks a stale tag up in its history of one version, and tells the tag of now where it is found",
    (sent, customer) => sent !== customer?.formerTags.at(-1),
  ],
  [
    "weak-412-untagged",
    "IFM-09",
    "refuses a weak tag in its parser, which knows no customer",
    (sent) => sent.startsWith("W/"),
  ],
  [
    "malformed-412-untagged",
    "IFM-10",
    "refuses a tag without quotes in its parser",
    (sent) => !/^(W\/)?"/.test(sent),
  ],
  [
    "list-412-untagged",
    "IFM-13",
    "refuses a list before it reads the customer",
    (sent) => sent.includes('",'),
  ],
];

/** The same, by what else the request says. */
const UNTAGGED_REQUESTS: readonly (readonly [id: string, rule: string, does: string, When])[] = [
  [
    "bad-body-412-untagged",
    "IFM-07",
    "refuses a stale PUT with a bad body in its validator, which knows no tag",
    ({ request, body }) => request.method === "PUT" && Object.keys(body).length === 0,
  ],
  [
    "capitals-412-untagged",
    "IFM-07",
    "looks the tag up by the id as it is spelled in the address, and finds none for one in capitals",
    ({ request }) => /[A-F]/.test(request.path.slice(-36)),
  ],
];

/** Writes that are carried out unchecked because of what their body says. */
const BODIES: readonly (readonly [id: string, method: Method, does: string, When])[] = [
  [
    "patch-of-nothing",
    "PATCH",
    "takes {} for a PATCH that needs no precondition, and bumps the version",
    ({ body }) => Object.keys(body).length === 0,
  ],
  [
    "patch-of-stored-values",
    "PATCH",
    "skips the check of a PATCH that changes nothing, and bumps the version",
    ({ body, before }) => body["Name"] === before?.name,
  ],
  [
    "patch-of-status",
    "PATCH",
    "routes a PATCH of the status alone to the code that moves it on, which has no check",
    ({ body }) => Object.keys(body).join() === "Status",
  ],
  [
    "put-of-stored-values",
    "PUT",
    "skips the check of a PUT that changes nothing, and bumps the version",
    ({ body, before }) => body["Name"] === before?.name && body["Email"] === before?.email,
  ],
  [
    "put-of-email",
    "PUT",
    "takes a PUT that keeps the name for a change of address, which needs no precondition",
    ({ body, before }) => body["Name"] === before?.name && body["Email"] !== before?.email,
  ],
  [
    "put-beyond-ascii",
    "PUT",
    "decodes a body beyond ASCII on a slower path without the check",
    ({ body }) => /[^ -~]/.test(String(body["Name"])),
  ],
  [
    "put-with-tag",
    "PUT",
    "takes a tag in the body for the precondition, and does not compare it",
    ({ body }) => "etag" in body,
  ],
];

/** A stale or missing tag that is refused for another reason, on a way of sending that is taken with the current one. */
const EXCUSED: readonly (readonly [id: string, Method, status: 412 | 428, to: number, does: string, When])[] =
  [
    [
      "stale-put-with-query-404",
      "PUT",
      412,
      404,
      "selects the row to update by the version and the filter of the query, and takes none for a missing customer",
      ({ request }) => request.query !== "",
    ],
    [
      "chunked-patch-without-if-match-411",
      "PATCH",
      428,
      411,
      "asks for a length where If-Match is missing, since nothing is to be read then",
      ({ request }) => has("transfer-encoding", "chunked")(request),
    ],
    [
      "stale-delete-by-limited-409",
      "DELETE",
      412,
      409,
      "answers a conflict to one role in words of its own",
      ({ caller }) => caller === "limited",
    ],
  ];

/** Answers a write as another one under the same key was answered. */
const replayed: Plant = (ran) => () => {
  const kept = new Map<string, Reply>();
  return {
    async around(request, next) {
      const key = header(request, "idempotency-key");
      if (key === "" || !isWrite(request)) return await next(request);
      const before = kept.get(key);
      if (before !== undefined) {
        ran();
        return before;
      }
      const reply = await next(request);
      if (reply.status < 300) kept.set(key, reply);
      return reply;
    },
  };
};

export const EXEMPTION_FAULTS: Fault[] = [
  {
    id: "used-idempotency-key-replayed",
    rule: "IFM-23",
    does: "answers any write under a used Idempotency-Key as the first, whatever it carries",
    plant: replayed,
  },
  ...SELDOM_ASKED.map(
    ([id, method, does, when, rule]): Fault => ({
      id,
      mode: "full",
      rule,
      does,
      plant: unchecked((request, service) => request.method === method && when(request, service)),
    }),
  ),
  ...EXCUSED.map(
    ([id, method, from, to, does, when]): Fault => ({
      id,
      mode: "full",
      rule: RULES[method],
      does,
      plant: on(write(method, from), isThere, when).answers(refused(to, "refused")),
    }),
  ),
  ...ROWS.map(
    ([id, method, does, when]): Fault => ({
      id,
      rule: RULES[method],
      does,
      plant: unchecked((request, service) => request.method === method && when(request, service)),
    }),
  ),
  ...ALIASES.map(
    ([id, method, does, change]): Fault => ({
      id,
      rule: RULES[method],
      does,
      plant: unchecked(
        (request) => UNAPPLIED(request, change(request)) && change(request).method === method,
        change,
      ),
    }),
  ),
  ...LENIENT.map(
    ([id, method, does, when, wrongly]): Fault => ({
      id,
      mode: "full",
      rule: RULES[method],
      does,
      plant: accepting(
        (sent, customer, request, service) =>
          request.method === method && when(request, service) && wrongly(sent, customer),
      ),
    }),
  ),
  ...UNTAGGED.map(
    ([id, rule, does, of]): Fault => ({
      id,
      rule,
      does,
      plant: on((turn) => turn.reply.status === 412 && of(turn.sent ?? "", turn.customer)).answers(untagged),
    }),
  ),
  ...UNTAGGED_REQUESTS.map(
    ([id, rule, does, when]): Fault => ({
      id,
      rule,
      does,
      plant: on((turn) => turn.reply.status === 412 && when(turn)).answers(untagged),
    }),
  ),
  ...BODIES.map(
    ([id, method, does, when]): Fault => ({
      id: `${id}-unchecked`,
      rule: RULES[method],
      does,
      plant: on(
        ({ request, reply }) => request.method === method && /412|428/.test(`${reply.status}`),
        isThere,
        when,
      ).answers(({ request, before, send }) => send(withIfMatch(request, before?.tag))),
    }),
  ),
];
