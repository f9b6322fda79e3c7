/** Writes that are not checked because of a header that they carry. */

import { type Exemption, exemptions, header } from "../../exemption.ts";
import { type Fault, has, type Plant } from "../../fault.ts";
import type { Reply } from "../../service/http-socket.ts";
import { isWrite } from "../../service/seams.ts";

const ROWS: readonly Exemption[] = [
  [
    "vendor-put-unchecked",
    "PUT",
    "takes a media type of a vendor by a route of its own, without the check",
    has("content-type", "application/vnd."),
  ],
  [
    "charset-patch-unchecked",
    "PATCH",
    "routes a PATCH whose media type has a parameter to an older handler without the check",
    has("content-type", "charset"),
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
    "localized-put-unchecked",
    "PUT",
    "checks the calls of services, and not those of its pages, which say Accept-Language",
    has("accept-language"),
  ],
  [
    "xml-client-put-unchecked",
    "PUT",
    "sends clients of its former release, which take XML alone, to a handler without the check",
    has("accept", "application/xml"),
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

export const EXEMPT_HEADER_FAULTS: Fault[] = [
  {
    id: "used-idempotency-key-replayed",
    rule: "IFM-23",
    does: "answers any write under a used Idempotency-Key as the first, whatever it carries",
    plant: replayed,
  },
  ...exemptions(ROWS),
];
