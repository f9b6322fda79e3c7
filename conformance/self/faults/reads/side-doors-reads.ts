/** Reads that come in by a side door: another parameter, another spelling of the address, a name that was tidied. */
import { customerOf, type Fault, instead, isRead, type Plant, requesting } from "../../fault.ts";
import type { Reply, Request } from "../../service/http-socket.ts";
import { type Caller, isWrite } from "../../service/seams.ts";
import type { Service } from "../../service/service.ts";
import { FIELDS } from "../../service/sound-options.ts";
import { on, showing, wholeRead, write } from "../../turn.ts";
import { privileged } from "../callers/tenants.ts";

/** Requests of a caller that are not looked at, since the address is not the one that the policy knows. */
const unguarded = (
  caller: Caller | undefined,
  spelled: RegExp,
  how = ({ method }: Request) => method === "GET",
): Plant =>
  requesting(
    (request, service) => how(request) && spelled.test(request.path) && service.caller(request) === caller,
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
const forgiving = (when: (request: Request, names: string[], service: Service) => boolean): Plant => {
  const split = (request: Request, { seams }: Service) => {
    const names = seams.fieldNames(request.query) ?? [];
    return { names, known: names.filter((name) => seams.known(name, names) !== undefined) };
  };
  return requesting(
    (request, service) => {
      const { names, known } = split(request, service);
      const some = known.length > 0 && known.length < names.length;
      return isRead(request) && some && when(request, names, service);
    },
    (request, service) => ({ ...request, query: `fields=${split(request, service).known.join(",")}` }),
  );
};

/** Names that are known once something was taken off them. */
const STRIPPED: readonly (readonly [id: string, how: string, strip: (name: string) => string])[] = [
  ["underscores", "without its underscores", (name) => name.replaceAll("_", "")],
  ["signs", "without the sign of a sort order", (name) => name.replace(/^[+-]/, "")],
  ["quotes", "without its quotes", (name) => name.replace(/^["']|["']$/g, "")],
  ["controls", "without blanks and control characters", (name) => name.replace(/[\0-\x20]/g, "")],
];

const lastOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/** What stands in place of an id is read as more than an id, and finds somebody. */
const ID_READERS: readonly (readonly [id: string, does: string, RegExp])[] = [
  ["sql", "pastes the id into the text of its query", /' or '/i],
  ["like", "compares ids by LIKE", /^[%_]+$/],
  ["star", "takes * for any id, as its search does", /^\*$/],
];

export const SIDE_DOOR_READ_FAULTS: Fault[] = [
  ...ID_READERS.map(
    ([id, does, pattern]): Fault => ({
      id: `id-read-as-${id}`,
      rule: "PRB-06",
      does,
      plant: requesting(
        (request) => isRead(request) && pattern.test(decodeURIComponent(lastOf(request.path))),
        (request, { customers }) => ({
          ...request,
          path: request.path.replace(lastOf(request.path), () => [...customers.keys()][0] ?? ""),
        }),
      ),
    }),
  ),
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
      id: `other-tenant-writes-by-${id}`,
      rule: "AUT-09",
      does: `checks the tenant of a write at the address as given out, not ${how}`,
      plant: unguarded("other", spelled, isWrite),
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
      const kept = new Map<string, Reply>();
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
    plant: on(wholeRead).answers(
      showing((body, { customer }) => ({ ...body, meta: { rowVersion: customer?.version } })),
    ),
  },
  {
    id: "odata-etag",
    rule: "ETG-14",
    does: "shows the tag in the body, as a framework annotates it",
    plant: on(wholeRead).answers(
      showing((body, { customer }) => ({ ...body, "@odata.etag": `W/"${customer?.version}"` })),
    ),
  },
  {
    id: "row-version-in-patch-answer",
    rule: "ETG-14",
    does: "shows the row version in the answer to PATCH alone",
    deployment: { patchAnswer: 200 },
    plant: on(write("PATCH", 200)).answers(
      showing((body, { customer }) => ({ ...body, RowVersion: customer?.version })),
    ),
  },
  ...STRIPPED.map(
    ([id, how, strip]): Fault => ({
      id: `names-without-${id}`,
      rule: "FLD-08",
      does: `looks a name up ${how}`,
      plant: instead(
        "known",
        (sound, name) => sound ?? FIELDS.find((each) => each === strip(name).toLowerCase()),
      ),
    }),
  ),
  {
    id: "names-cut-to-a-column",
    rule: "FLD-08",
    does: "looks a name up in a column of six characters, which cuts the rest off",
    plant: instead("known", (sound, name) =>
      name.slice(0, 6).toLowerCase() === "status" ? "status" : sound,
    ),
  },
  {
    id: "names-folded-to-capitals",
    rule: "FLD-08",
    does: "compares names in capitals, where other letters have the same",
    plant: instead("known", (_sound, name) =>
      FIELDS.find((field) => field.toUpperCase() === name.toUpperCase()),
    ),
  },
];
