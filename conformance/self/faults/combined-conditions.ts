/** What goes wrong only where two things come together, each of which is handled by itself. */
import { asCurrent, type Fault, has, isRead, type Plant, requesting } from "../fault.ts";
import { headerLines, type Reply, type Request } from "../service/http-socket.ts";
import { isWrite } from "../service/seams.ts";
import type { Service } from "../service/service.ts";
import { by, on, projectedRead, spoiling, untagged, write } from "../turn.ts";
import { privileged } from "./callers/tenants.ts";
import { isFresh, unguarded, unshaped } from "./reads/usual-reads.ts";

const isBy =
  (caller: "limited" | "other") =>
  (request: Request, service: Service): boolean =>
    service.caller(request) === caller;

/** Writes for which both hold are taken to carry the current tag. */
const exempt = (
  method: string,
  one: (request: Request, service: Service) => boolean,
  other: (request: Request, service: Service) => boolean,
): Plant =>
  asCurrent(
    (request, service) => request.method === method && one(request, service) && other(request, service),
  );

/** Such writes of another tenant, to what was never updated, pass for the owner's. */
const admitted = (method: string, when: (request: Request) => boolean): Plant =>
  requesting(
    (request, service) =>
      request.method === method &&
      service.caller(request) === "other" &&
      isFresh(request, service) &&
      when(request),
    privileged,
  );

const withBody = (request: Request) => Number(headerLines(request, "content-length").join()) > 0;
const inCapitals = ({ path }: Request) => /\/[^/]*[A-F][^/]*$/.test(path);

/** Keeps compressed projections until the next PUT, whatever a PATCH changes. */
const compressedKept: Plant = (ran) => (service) => {
  const kept = new Map<string, string>();
  return {
    async around(request, next) {
      if (request.method === "PUT") kept.clear();
      const reply = await next(request);
      const isKept = isRead(request) && has("accept-encoding", "gzip")(request) && request.query !== "";
      if (!isKept || reply.status !== 200) return reply;
      const key = `${service.caller(request)} ${request.target}`;
      const body = kept.get(key) ?? String(reply.body);
      kept.set(key, body);
      if (body !== String(reply.body)) ran();
      return { ...reply, body };
    },
  };
};

/** A repetition on the connection is answered from its last outcome. */
const repeated: Plant = (ran) => () => {
  const last = new WeakMap<Request["connection"], { asked: string; reply: Reply }>();
  return {
    async around(request, next) {
      if (!isWrite(request)) return await next(request);
      const tag = headerLines(request, "if-match").join();
      const asked = `${request.method} ${request.path} ${tag} ${await request.body()}`;
      const known = last.get(request.connection);
      if (known?.asked === asked) {
        ran();
        return known.reply;
      }
      const reply = await next(request);
      if (reply.status < 300) last.set(request.connection, { asked, reply });
      return reply;
    },
  };
};

export const COMBINATION_FAULTS: Fault[] = [
  {
    id: "other-tenant-unchecked-at-capitals",
    rule: "IFM-51",
    mode: "full",
    does: "lets the old sync of a tenant through, which spells ids in capitals and sends no condition",
    plant: exempt("PUT", isBy("other"), inCapitals),
  },
  {
    id: "limited-put-unchecked-in-chunks",
    rule: "IFM-51",
    mode: "full",
    does: "streams bodies in chunks to an import, whose rows of the limited role nobody compares",
    plant: exempt("PUT", isBy("limited"), has("transfer-encoding", "chunked")),
  },
  {
    id: "limited-patch-unchecked-with-key",
    rule: "IFM-52",
    mode: "full",
    does: "takes a PATCH of the limited role with an Idempotency-Key for one that waited in a queue, already checked",
    plant: exempt("PATCH", isBy("limited"), has("idempotency-key")),
  },
  {
    id: "limited-patch-without-condition-in-chunks",
    rule: "IFM-52",
    mode: "full",
    does: "takes a PATCH in chunks of the limited role that has no condition for a row of an import; compares tags",
    plant: exempt(
      "PATCH",
      isBy("limited"),
      (request) =>
        headerLines(request, "if-match").length === 0 && has("transfer-encoding", "chunked")(request),
    ),
  },
  {
    id: "stale-limited-put-applied-from-browsers",
    rule: "IFM-51",
    mode: "full",
    does: "takes a tag of the limited role that comes from a browser for one that its form has compared; wants a tag",
    plant: exempt(
      "PUT",
      isBy("limited"),
      (request) => headerLines(request, "if-match").join().trim() !== "" && has("sec-fetch-mode")(request),
    ),
  },
  {
    id: "http10-patch-unchecked-beside-fields",
    rule: "IFM-52",
    mode: "full",
    does: "sends a PATCH over HTTP/1.0 that asks for fields to an old handler, which compares nothing",
    plant: exempt(
      "PATCH",
      ({ version }) => version === "1.0",
      ({ query }) => query.startsWith("fields="),
    ),
  },
  {
    id: "fresh-delete-unchecked-from-browsers",
    rule: "IFM-53",
    mode: "full",
    does: "lets a page take back what was just made: a DELETE from a browser, before the first update",
    plant: exempt("DELETE", isFresh, has("sec-fetch-mode")),
  },
  {
    id: "limited-delete-unchecked-with-body",
    rule: "IFM-53",
    mode: "full",
    does: "takes a DELETE with a body for one of many, whose rows of the limited role nobody compares",
    plant: exempt("DELETE", isBy("limited"), withBody),
  },
  {
    id: "limited-put-keeps-version-in-chunks",
    rule: "ETG-20",
    mode: "full",
    does: "streams bodies in chunks to an import, which bumps no version for the limited role",
    plant: on(write("PUT"), by("limited"), ({ request }) =>
      has("transfer-encoding", "chunked")(request),
    ).answers(spoiling(({ tag }, { before }) => ({ tag: before?.tag ?? tag }))),
  },
  {
    id: "patch-lost-from-browsers-with-charset",
    rule: "ETG-20",
    mode: "full",
    does: "takes a PATCH with a charset from a browser for the preview of a form, and stores nothing",
    plant: on(write("PATCH"), ({ request }) =>
      Boolean(has("sec-fetch-mode")(request) && has("content-type", "charset")(request)),
    ).answers(
      spoiling(({ name, email }, { before }) => ({
        name: before?.name ?? name,
        email: before?.email ?? email,
      })),
    ),
  },
  {
    id: "other-tenant-deletes-fresh-with-body",
    rule: "AUT-20",
    mode: "full",
    does: "takes back in bulk what was made a moment ago: a DELETE with a body, before the first update, of any tenant",
    plant: admitted("DELETE", withBody),
  },
  {
    id: "other-tenant-puts-fresh-from-browsers",
    rule: "AUT-20",
    mode: "full",
    does: "lets a page of any tenant complete what has just been made: a PUT from a browser, before the first update",
    plant: admitted("PUT", has("sec-fetch-mode")),
  },
  {
    id: "fields-ignored-fresh-and-compressed",
    rule: "FLD-22",
    mode: "full",
    does: "compresses the event of the create, whole, until the first update",
    plant: unshaped(
      (request, service) => isFresh(request, service) && has("accept-encoding", "gzip")(request),
    ),
  },
  {
    id: "compressed-projection-kept-after-patch",
    rule: "FLD-22",
    mode: "full",
    does: "keeps compressed projections until the next PUT, whatever a PATCH changes",
    plant: compressedKept,
  },
  {
    id: "status-untagged-to-proxies",
    rule: "FLD-22",
    mode: "full",
    does: "answers the status alone, where a proxy asks, from a table that has no version",
    plant: on(projectedRead, ({ request }) =>
      Boolean(request.query.startsWith("fields=status") && has("via")(request)),
    ).answers(untagged),
  },
  {
    id: "limited-reads-fresh-from-browsers",
    rule: "AUT-19",
    mode: "full",
    does: "shows a page of what was just made, without a policy, to a browser",
    plant: unguarded("limited", (request, service) =>
      Boolean(isFresh(request, service) && has("sec-fetch-mode")(request)),
    ),
  },
  {
    id: "other-tenant-reads-fresh-compressed",
    rule: "AUT-19",
    mode: "full",
    does: "compresses the event of the create, which has no tenant yet",
    plant: unguarded("other", (request, service) =>
      Boolean(isFresh(request, service) && has("accept-encoding", "gzip")(request)),
    ),
  },
  {
    id: "repeated-on-connection",
    rule: "IFM-23",
    mode: "full",
    does: "answers the same write again on its connection with the outcome that it had",
    plant: repeated,
  },
];
