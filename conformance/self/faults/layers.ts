/** ENV: sound services behind layers that spoil them. */
import { gzipSync } from "node:zlib";
import { customerOf, type Fault, isCustomer, isRead, replying, requesting, withIfMatch } from "../fault.ts";
import { getHeader, headerLines, type Reply, type Request, setHeader } from "../service/http-socket.ts";
import { isWrite } from "../service/seams.ts";

const acceptsGzip = (request: Request) => /gzip/.test(headerLines(request, "accept-encoding").join(","));
const via = (reply: Reply): Reply => setHeader(reply, "Via", "1.1 edge");
const compressible = (reply: Reply, request: Request) =>
  isRead(request) && reply.status === 200 && acceptsGzip(request);
const compressed = (reply: Reply, tag: string | undefined): Reply =>
  setHeader(
    via({
      ...reply,
      headers: [...reply.headers, ["Content-Encoding", "gzip"], ["Vary", "Accept-Encoding"]],
      body: gzipSync(String(reply.body)),
    }),
    "ETag",
    tag,
  );

export const LAYER_FAULTS: Fault[] = [
  {
    id: "gzip-weakens-etag",
    rule: "ENV-01",
    does: "compresses on the way and weakens the tag, as nginx does",
    plant: replying(compressible, (reply) => compressed(reply, `W/${getHeader(reply, "etag")}`)),
  },
  {
    id: "gzip-suffixes-etag",
    rule: "ENV-01",
    does: "compresses on the way and appends -gzip to the tag, as Apache does",
    plant: replying(compressible, (reply) =>
      compressed(reply, getHeader(reply, "etag")?.replace(/"$/, '-gzip"')),
    ),
  },
  {
    id: "gzip-strips-etag",
    rule: "ENV-01",
    does: "compresses on the way and removes the tag, as old nginx and HAProxy do",
    plant: replying(compressible, (reply) => compressed(reply, undefined)),
  },
  {
    id: "proxy-strips-etag",
    rule: "ETG-01",
    does: "stands behind a proxy that removes ETag from everything",
    plant: replying(
      (_reply, request) => isCustomer(request),
      (reply) => via(setHeader(reply, "ETag", undefined)),
    ),
  },
  {
    id: "proxy-strips-if-match",
    rule: "IFM-01",
    does: "stands behind a proxy that drops If-Match",
    plant: (ran) => () => ({
      async around(request, next) {
        if (!isWrite(request) || headerLines(request, "if-match").length === 0) return await next(request);
        ran();
        return via(await next(withIfMatch(request, undefined)));
      },
    }),
  },
  {
    id: "proxy-unquotes-if-match",
    rule: "IFM-01",
    does: "stands behind a proxy that removes the quotes of If-Match",
    plant: requesting(
      (request) => isWrite(request) && headerLines(request, "if-match").join("").includes('"'),
      (request) => withIfMatch(request, headerLines(request, "if-match").join(", ").replaceAll('"', "")),
    ),
  },
  {
    id: "proxy-caches-reads",
    rule: "IFM-01",
    does: "stands behind a cache that serves reads from before the write for a while",
    plant: (ran) => (service) => {
      const shelf = new Map<string, { reply: Reply; until: number }>();
      return {
        async around(request, next) {
          if (!isRead(request)) return await next(request);
          const key = `${request.path}?${request.query} ${service.caller(request)}`;
          const kept = shelf.get(key);
          if (kept !== undefined && kept.until > Date.now()) {
            if (getHeader(kept.reply, "etag") !== customerOf(request, service)?.tag) ran();
            return setHeader(via(kept.reply), "Age", "1");
          }
          const reply = await next(request);
          if (reply.status === 200) shelf.set(key, { reply, until: Date.now() + 10_000 });
          return reply;
        },
      };
    },
  },
  {
    id: "proxy-cache-forgets-query",
    rule: "FLD-01",
    does: "stands behind a cache whose key leaves the query out",
    plant: (ran) => (service) => {
      const shelf = new Map<string, { reply: Reply; query: string; tag: string | undefined }>();
      return {
        async around(request, next) {
          if (!isRead(request)) return await next(request);
          const key = `${request.method} ${request.path} ${service.caller(request)}`;
          const kept = shelf.get(key);
          const tag = customerOf(request, service)?.tag;
          if (kept !== undefined && kept.tag === tag && tag !== undefined) {
            if (kept.query !== request.query) ran();
            return setHeader(via(kept.reply), "Age", "0");
          }
          const reply = await next(request);
          if (reply.status === 200) shelf.set(key, { reply, query: request.query, tag });
          return reply;
        },
      };
    },
  },
  {
    id: "proxy-pages-replace-412",
    rule: "IFM-07",
    does: "stands behind a gateway that replaces every error by its own page",
    plant: replying(
      (reply, request) => isWrite(request) && reply.status === 412,
      () =>
        via({
          status: 412,
          headers: [["Content-Type", "text/html"]],
          body: "<html><body><h1>412 Precondition Failed</h1></body></html>",
        }),
    ),
  },
  {
    id: "gzip-client-cannot-write",
    rule: "ENV-02",
    does: "suffixes If-Match on the way in for clients that accept gzip, as mod_deflate's counterpart does, and nothing on the way out",
    plant: requesting(
      (request) => isWrite(request) && acceptsGzip(request) && headerLines(request, "if-match").length === 1,
      (request) => withIfMatch(request, headerLines(request, "if-match")[0]?.replace(/" *$/, '-gzip"')),
    ),
  },
  {
    id: "gzip-weakens-412",
    rule: "ENV-03",
    does: "compresses refusals only, and weakens their tag",
    plant: replying(
      (reply, request) => isWrite(request) && reply.status === 412 && acceptsGzip(request),
      (reply) => compressed(reply, `W/${getHeader(reply, "etag")}`),
    ),
  },
  ...(["public, max-age=60", "s-maxage=300, must-revalidate", "public"] as const).map(
    (value, n): Fault => ({
      id: `cache-control-public-${n + 1}`,
      rule: "ENV-05",
      does: `lets shared caches keep customers: Cache-Control: ${value} without Vary`,
      plant: replying(
        (reply, request) => isRead(request) && reply.status === 200,
        (reply) => setHeader(setHeader(reply, "Vary", undefined), "Cache-Control", value),
      ),
    }),
  ),
];
