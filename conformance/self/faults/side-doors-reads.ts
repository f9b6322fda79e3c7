/** Reads that come in by a side door: another parameter, another spelling of the address, a name that was mended. */
import {
  customerOf,
  deciding,
  type Fault,
  isRead,
  type Plant,
  replying,
  requesting,
  withBody,
} from "../fault.ts";
import type { Reply, Request } from "../service/http-socket.ts";
import type { Caller } from "../service/seams.ts";
import { CREDENTIALS, type Service } from "../service/service.ts";

/** Carries a read out with the rights of the main caller. */
function privileged(request: Request, service: Service): Request {
  const { header, scheme } = service.deployment.credential;
  const others = request.headers.filter(([name]) => name.toLowerCase() !== header.toLowerCase());
  return { ...request, headers: [...others, [header, scheme + CREDENTIALS.main]] };
}

const isWholeRead = (reply: Reply, request: Request): boolean =>
  isRead(request) && reply.status === 200 && request.query === "";

/** Reads of a caller that are not looked at, since the address is not the one that the policy knows. */
const unguarded = (caller: Caller | undefined, spelled: RegExp): Plant =>
  requesting(
    (request, service) =>
      request.method === "GET" && spelled.test(request.path) && service.caller(request) === caller,
    (request, service) => ({
      ...privileged(request, service),
      path: request.path.toLowerCase().replace(/\/$/, ""),
    }),
  );

const SPELLINGS = [
  ["slash", "with a slash at its end", /\/customers\/[^/]+\/$/],
  ["capitals", "with the id in capitals", /\/customers\/[^/]*[A-F][^/]*$/],
] as const;

const PARAMETERS = ["fields[]", "select", "$select", "include"] as const;

/** The unknown names of a list are dropped, where something known is left. */
const forgiving = (when: (request: Request, names: string[], service: Service) => boolean): Plant =>
  requesting(
    (request, service) => {
      const names = service.seams.fieldNames(request.query) ?? [];
      const known = names.filter((name) => service.seams.known(name, names) !== undefined);
      return (
        isRead(request) && known.length > 0 && known.length < names.length && when(request, names, service)
      );
    },
    (request, service) => {
      const names = service.seams.fieldNames(request.query) ?? [];
      const known = names.filter((name) => service.seams.known(name, names) !== undefined);
      return { ...request, query: `fields=${known.join(",")}` };
    },
  );

/** Looks names up after something was taken off them. */
const stripping = (strip: (name: string) => string): Plant =>
  deciding("known", (sound, ran) => (name, names) => {
    const field = sound(name, names);
    if (field !== undefined) return field;
    const found = sound(strip(name), names);
    if (found !== undefined) ran();
    return found;
  });

export const SIDE_DOOR_READ_FAULTS: Fault[] = [
  ...PARAMETERS.map(
    (name): Fault => ({
      id: `forbidden-field-by-${name.replace(/[^a-z]+/g, "") + (/^[a-z]+$/.test(name) ? "" : "-marked")}`,
      rule: "AUT-04",
      does: `knows the parameter ${name} too, and no policy for it`,
      plant: requesting(
        (request, service) =>
          service.caller(request) === "limited" && request.query.startsWith(`${name}=`) && isRead(request),
        (request, service) => ({
          ...privileged(request, service),
          query: `fields=${request.query.slice(name.length + 1)}`,
        }),
      ),
    }),
  ),
  ...SPELLINGS.flatMap(([id, how, spelled]): Fault[] => [
    {
      id: `forbidden-field-by-${id}`,
      rule: "AUT-04",
      does: `applies the field policy to the address as given out, not ${how}`,
      plant: unguarded("limited", spelled),
    },
    {
      id: `other-tenant-reads-by-${id}`,
      rule: "AUT-08",
      does: `checks the tenant at the address as given out, not ${how}`,
      plant: unguarded("other", spelled),
    },
    {
      id: `anyone-reads-by-${id}`,
      rule: "AUT-12",
      does: `asks for credentials at the address as given out, not ${how}`,
      plant: unguarded(undefined, spelled),
    },
  ]),
  {
    id: "unknown-field-ignored-for-limited",
    rule: "FLD-03",
    does: "ignores unknown names that the limited caller names beside known ones",
    plant: forgiving((request, _names, service) => service.caller(request) === "limited"),
  },
  {
    id: "unknown-field-ignored-in-long-list",
    rule: "FLD-03",
    does: "ignores unknown names in lists of more than eight",
    plant: forgiving((_request, names) => names.length > 8),
  },
  {
    id: "projection-cache-forgets-patch",
    rule: "ENV-04",
    does: "keeps the projection of the name until the next PUT",
    plant: (ran) => (service) => {
      const kept = new Map<string, Awaited<ReturnType<typeof service.handle>>>();
      return {
        async around(request, next) {
          const id = customerOf(request, service)?.id ?? "";
          if (request.method === "PUT") kept.delete(id);
          if (request.method !== "GET" || request.query !== "fields=name") return await next(request);
          const reply = await next(request);
          const old = kept.get(id);
          if (reply.status !== 200) return reply;
          kept.set(id, old ?? reply);
          if (old === undefined || old.body === reply.body) return reply;
          ran();
          return old;
        },
      };
    },
  },
  {
    id: "row-version-within",
    rule: "ETG-14",
    does: "shows the row version in an object within the body",
    plant: replying(isWholeRead, (reply, request, service) =>
      withBody(reply, (body) => ({
        ...body,
        meta: { rowVersion: customerOf(request, service)?.version },
      })),
    ),
  },
  {
    id: "odata-etag",
    rule: "ETG-14",
    does: "shows the tag in the body, as a framework annotates it",
    plant: replying(isWholeRead, (reply, request, service) =>
      withBody(reply, (body) => ({
        ...body,
        "@odata.etag": `W/"${customerOf(request, service)?.version}"`,
      })),
    ),
  },
  {
    id: "row-version-in-patch-answer",
    rule: "ETG-14",
    does: "shows the row version in the answer to PATCH alone",
    deployment: { patchAnswer: 200 },
    plant: replying(
      (reply, request) => request.method === "PATCH" && reply.status === 200,
      (reply, request, service) =>
        withBody(reply, (body) => ({ ...body, RowVersion: customerOf(request, service)?.version })),
    ),
  },
  ...(
    [
      ["underscores", "without its underscores", (name) => name.replaceAll("_", "")],
      ["signs", "without the sign of a sort order", (name) => name.replace(/^[+-]/, "")],
      ["quotes", "without its quotes", (name) => name.replace(/^["']|["']$/g, "")],
      ["controls", "without blanks and control characters", (name) => name.replace(/[\0-\x20]/g, "")],
    ] as [string, string, (name: string) => string][]
  ).map(
    ([id, how, strip]): Fault => ({
      id: `names-without-${id}`,
      rule: "FLD-08",
      does: `looks a name up ${how}`,
      plant: stripping(strip),
    }),
  ),
  {
    id: "names-folded-to-capitals",
    rule: "FLD-08",
    does: "compares names in capitals, where other letters have the same",
    plant: deciding("known", (sound, ran) => (name, names) => {
      const field = (["id", "name", "email", "status"] as const).find(
        (each) => each.toUpperCase() === name.toUpperCase(),
      );
      if (field !== sound(name, names)) ran();
      return field;
    }),
  },
];
