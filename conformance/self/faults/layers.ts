/** ENV: sound services behind layers that spoil them. */
import { gzipSync } from "node:zlib";
import { customerOf, type Fault, isRead, type Plant, requesting, withIfMatch } from "../fault.ts";
import { getHeader, headerLines, type Reply, type Request, setHeader } from "../service/http-socket.ts";
import { isWrite } from "../service/seams.ts";
import { by, on, read, type When, weakened, write } from "../turn.ts";

const acceptsGzip = (request: Request) => /gzip/.test(headerLines(request, "accept-encoding").join(","));
const compressible: When = ({ request }) => acceptsGzip(request);
const via = (reply: Reply): Reply => setHeader(reply, "Via", "1.1 edge");
const compressed =
  (change: (tag: string) => string | undefined) =>
  ({ reply }: { reply: Reply }): Reply => {
    const content: Reply["headers"] = [
      ["Content-Encoding", "gzip"],
      ["Vary", "Accept-Encoding"],
    ];
    const body = gzipSync(String(reply.body));
    const zipped = via({ ...reply, headers: [...reply.headers, ...content], body });
    return setHeader(zipped, "ETag", change(getHeader(reply, "etag") ?? ""));
  };
const sharing = (reply: Reply, value: string) =>
  setHeader(setHeader(reply, "Vary", undefined), "Cache-Control", value);
const weaken = (tag: string) => `W/${tag}`;

/** Keeps reads and answers later ones from there. @param fresh whether a kept one may still be shown */
const caching = (
  key: (request: Request, caller: string) => string,
  fresh: (
    kept: { query: string; tag: string | undefined; until: number },
    tag: string | undefined,
  ) => boolean,
): Plant => {
  type Kept = { reply: Reply; query: string; tag: string | undefined; until: number };
  return (ran) => (service) => {
    const shelf = new Map<string, Kept>();
    return {
      async around(request, next) {
        if (!isRead(request)) return await next(request);
        const at = key(request, String(service.caller(request)));
        const kept = shelf.get(at);
        const tag = customerOf(request, service)?.tag;
        if (kept !== undefined && fresh(kept, tag)) {
          if (kept.query !== request.query || kept.tag !== tag) ran();
          return setHeader(via(kept.reply), "Age", "1");
        }
        const reply = await next(request);
        if (reply.status === 200)
          shelf.set(at, { reply, query: request.query, tag, until: Date.now() + 10_000 });
        return reply;
      },
    };
  };
};

export const LAYER_FAULTS: Fault[] = [
  {
    id: "gzip-weakens-etag",
    rule: "ENV-01",
    does: "compresses on the way and weakens the tag, as nginx does",
    plant: on(read(), compressible).answers(compressed(weaken)),
  },
  {
    id: "gzip-suffixes-etag",
    rule: "ENV-01",
    does: "compresses on the way and appends -gzip to the tag, as Apache does",
    plant: on(read(), compressible).answers(compressed((tag) => tag.replace(/"$/, '-gzip"'))),
  },
  {
    id: "gzip-strips-etag",
    rule: "ENV-01",
    does: "compresses on the way and removes the tag, as old nginx and HAProxy do",
    plant: on(read(), compressible).answers(compressed(() => undefined)),
  },
  {
    id: "proxy-strips-etag",
    rule: "ETG-01",
    does: "stands behind a proxy that removes ETag from everything",
    plant: on(() => true).answers(({ reply }) => via(setHeader(reply, "ETag", undefined))),
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
    id: "repeated-read-without-etag",
    rule: "IFM-01",
    does: "stands behind a cache that keeps bodies and drops the ETag: what was read already comes without one",
    plant: (ran) => (service) => {
      const read = new Set<string>();
      return {
        async around(request, next) {
          const reply = await next(request);
          const key = `${customerOf(request, service)?.tag} ${request.query} ${service.caller(request)}`;
          if (!isRead(request) || reply.status !== 200) return reply;
          if (!read.has(key)) {
            read.add(key);
            return reply;
          }
          ran();
          return setHeader(reply, "ETag", undefined);
        },
      };
    },
  },
  {
    id: "proxy-caches-reads",
    rule: "ENV-04",
    does: "stands behind a cache that serves reads from before the write for a while",
    plant: caching(
      (request, caller) => `${request.path}?${request.query} ${caller}`,
      ({ until }) => until > Date.now(),
    ),
  },
  {
    id: "proxy-cache-forgets-query",
    rule: "FLD-01",
    does: "stands behind a cache whose key leaves the query out",
    plant: caching(
      (request, caller) => `${request.method} ${request.path} ${caller}`,
      (kept, tag) => tag !== undefined && kept.tag === tag,
    ),
  },
  {
    id: "proxy-pages-replace-412",
    rule: "IFM-07",
    does: "stands behind a gateway that replaces every error by its own page",
    plant: on(write(undefined, 412)).answers(() =>
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
    plant: on(write(undefined, 412), compressible).answers(compressed(weaken)),
  },
  ...(["public, max-age=60", "s-maxage=300, must-revalidate", "public"] as const).map(
    (value, n): Fault => ({
      id: `cache-control-public-${n + 1}`,
      rule: "ENV-05",
      does: `lets shared caches keep customers: Cache-Control: ${value} without Vary`,
      plant: on(read()).answers(({ reply }) => sharing(reply, value)),
    }),
  ),
  {
    id: "shared-by-the-limited",
    rule: "ENV-05",
    does: "takes the answers to its read-only role for public ones",
    plant: on(read(), by("limited")).answers(({ reply }) => sharing(reply, "public, max-age=60")),
  },
  {
    id: "shared-compressed",
    rule: "ENV-05",
    does: "lets its compressing module set Cache-Control",
    plant: on(read(), ({ request }) =>
      headerLines(request, "accept-encoding").join().includes("gzip"),
    ).answers(({ reply }) => sharing(reply, "public, max-age=60")),
  },
  {
    id: "shared-404-to-other-tenant",
    rule: "ENV-05",
    does: "lets shared caches keep every 404 for a minute",
    plant: on(read(404)).answers(({ reply }) => sharing(reply, "public, max-age=60")),
  },
  {
    id: "shared-refusal-of-field",
    rule: "ENV-05",
    does: "lets shared caches keep the refusal of a field, to spare the policy",
    plant: on(read(403)).answers(({ reply }) => sharing(reply, "public, max-age=60")),
  },
  {
    id: "shared-304",
    rule: "ENV-05",
    does: "lets its filter of conditions set Cache-Control on 304",
    deployment: { conditionalReads: true },
    plant: on(read(304)).answers(({ reply }) => sharing(reply, "public, max-age=60")),
  },
  {
    id: "shared-by-cdn",
    rule: "ENV-05",
    does: "tells its CDN to keep reads for a minute, whatever Cache-Control says",
    plant: on(read()).answers(({ reply }) => setHeader(reply, "CDN-Cache-Control", "max-age=60")),
  },
  {
    id: "shared-put",
    rule: "ENV-05",
    does: "lets caches keep the customer that a PUT answers",
    deployment: { putAnswer: 200 },
    plant: on(write("PUT", 200)).answers(({ reply }) => sharing(reply, "public, max-age=60")),
  },
  {
    id: "shared-if-revalidated",
    rule: "ENV-05",
    does: "says must-revalidate, which lets a shared cache keep an answer to Authorization",
    plant: on(read()).answers(({ reply }) => sharing(reply, "max-age=60, must-revalidate")),
  },
  {
    id: "delete-answers-weakened",
    rule: "IFM-44",
    does: "stands behind a gateway that weakens the tags of everything about DELETE",
    plant: on(
      ({ request, reply }) => request.method === "DELETE" && getHeader(reply, "etag") !== undefined,
    ).answers(weakened),
  },
  {
    id: "brotli-weakens-etag",
    rule: "ENV-01",
    does: "stands behind a proxy that compresses with brotli and weakens the tag then",
    plant: on(
      read(),
      ({ request }) => headerLines(request, "accept-encoding").join().trim() === "br",
    ).answers(weakened),
  },
  {
    id: "contended-put-repeated",
    rule: "ATM-01",
    does: "stands behind a gateway that sends a PUT again when it had to wait, and passes on the second answer",
    plant: on(write("PUT"), ({ met }) => met).answers(({ request, send }) =>
      send(withIfMatch(request, headerLines(request, "if-match")[0]?.trim())),
    ),
  },
  {
    id: "gzip-without-its-header",
    rule: "FLD-01",
    does: "compresses projections on the way, and loses the header that says so",
    plant: on(read(), compressible, ({ request }) => request.query.startsWith("fields=")).answers((turn) =>
      setHeader(compressed((tag) => tag)(turn), "Content-Encoding", undefined),
    ),
  },
];
