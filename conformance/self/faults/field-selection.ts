/** FLD: projection (2.2, 4.1). */

import { deciding, type Fault, isRead, replying, withBody } from "../fault.ts";
import { fieldsParameter } from "../service/seams.ts";
import { FIELDS } from "../service/sound-options.ts";

const projected = (reply: { status: number }, request: { method: string; path: string; query: string }) =>
  request.method === "GET" &&
  /\/customers\//.test(request.path) &&
  reply.status === 200 &&
  /(^|&)fields=/.test(request.query);

/** Unknown names that a sloppy registry lets through. */
const SLOPPY: [
  id: string,
  does: string,
  rule: string,
  wrongly: (name: string, names: string[]) => boolean,
][] = [
  ["unknown-field-ignored", "ignores unknown names", "FLD-03", () => true],
  [
    "unknown-field-ignored-beside-known",
    "refuses unknown names only where no known one stands beside them",
    "FLD-03",
    (_name, names) => names.some((each) => FIELDS.some((field) => field === each.toLowerCase())),
  ],
  [
    "only-first-field-checked",
    "checks the first name of the list alone",
    "FLD-03",
    (name, names) => names.indexOf(name) > 0,
  ],
  [
    "registry-is-an-object",
    "looks names up with `in`, so that constructor and toString are known",
    "FLD-08",
    (name) => name in {},
  ],
  [
    "registry-finds-substrings",
    "finds a name that is part of a known one",
    "FLD-08",
    (name) =>
      name !== "" &&
      FIELDS.some((field) => field !== name.toLowerCase() && field.includes(name.toLowerCase())),
  ],
  [
    "created-at-passes-as-unknown",
    "lets createdAt pass without showing it",
    "FLD-06",
    (name) => name.toLowerCase() === "createdat",
  ],
  ["star-is-every-field", "takes * for every field", "FLD-08", (name) => name === "*"],
];

export const FIELD_FAULTS: Fault[] = [
  ...SLOPPY.map(
    ([id, does, rule, wrongly]): Fault => ({
      id,
      rule,
      does,
      plant: deciding("fieldNames", (sound, ran, service) => (query) => {
        const names = sound(query);
        const kept = names?.filter(
          (name) => name === "" || service.seams.known(name, names) !== undefined || !wrongly(name, names),
        );
        if (kept?.length === names?.length) return names;
        ran();
        return kept?.length === 0 ? (id.startsWith("star") ? [...FIELDS] : ["id"]) : kept;
      }),
    }),
  ),
  ...([404, 422, 500] as const).map(
    (status): Fault => ({
      id: `unknown-field-answered-${status}`,
      rule: "FLD-03",
      does: `answers an unknown field with ${status}`,
      plant: replying(
        (reply, request) => isRead(request) && reply.status === 400,
        (reply) => ({ ...reply, status }),
      ),
    }),
  ),
  {
    id: "fields-ignored",
    rule: "FLD-01",
    does: "checks the names and returns the default set",
    plant: deciding("shape", (sound, ran, service) => (customer, shown, caller, request) => {
      if (fieldsParameter(request.query).length === 0) return sound(customer, shown, caller, request);
      ran();
      return sound(
        customer,
        service.deployment.defaultFields.filter((field) => service.seams.mayRead(caller, field, "", request)),
        caller,
        request,
      );
    }),
  },
  {
    id: "unrequested-null",
    rule: "FLD-09",
    does: "returns null for every field that was not requested",
    plant: replying(projected, (reply, _request, service) =>
      withBody(reply, (body) => ({
        ...Object.fromEntries(FIELDS.map((field) => [service.deployment.members[field], null])),
        ...body,
      })),
    ),
  },
  {
    id: "unrequested-empty",
    rule: "FLD-01",
    does: "returns an empty string for every field that was not requested",
    plant: replying(projected, (reply, _request, service) =>
      withBody(reply, (body) => ({
        ...Object.fromEntries(FIELDS.map((field) => [service.deployment.members[field], ""])),
        ...body,
      })),
    ),
  },
  {
    id: "id-always-there",
    rule: "FLD-01",
    does: "returns the id whether it was requested or not",
    plant: deciding("shape", (sound, ran) => (customer, shown, caller, request) => {
      if (shown.includes("id")) return sound(customer, shown, caller, request);
      ran();
      return sound(customer, ["id", ...shown], caller, request);
    }),
  },
  {
    id: "last-field-dropped",
    rule: "FLD-02",
    does: "forgets the last of three or more names",
    plant: deciding("fieldNames", (sound, ran) => (query) => {
      const names = sound(query);
      if (names === undefined || names.length < 3) return names;
      ran();
      return names.slice(0, -1);
    }),
  },
  ...FIELDS.filter((field) => field !== "name").map(
    (field): Fault => ({
      id: `${field}-not-selectable`,
      rule: "FLD-01",
      does: `does not know the registry name ${field}`,
      plant: deciding("known", (sound, ran) => (name, names) => {
        if (name.toLowerCase() !== field) return sound(name, names);
        ran();
        return undefined;
      }),
    }),
  ),
  {
    id: "field-names-case-sensitive",
    rule: "FLD-05",
    does: "knows names in lower case alone",
    plant: deciding("known", (sound, ran) => (name, names) => {
      if (name === name.toLowerCase()) return sound(name, names);
      ran();
      return undefined;
    }),
  },
  {
    id: "turkish-field-names",
    rule: "FLD-05",
    does: "lower-cases names in a locale where ID becomes ıd",
    plant: deciding("known", (sound, ran) => (name, names) => {
      if (!name.includes("I")) return sound(name, names);
      ran();
      return undefined;
    }),
  },
  {
    id: "created-at-selectable",
    rule: "FLD-06",
    does: "lets createdAt be requested",
    plant: deciding("known", (sound, ran) => (name, names) => {
      if (name.toLowerCase() !== "createdat") return sound(name, names);
      ran();
      return "createdAt";
    }),
  },
  {
    id: "row-version-selectable",
    rule: "FLD-07",
    does: "lets rowVersion be requested",
    plant: deciding("known", (sound, ran) => (name, names) => {
      if (name.toLowerCase() !== "rowversion") return sound(name, names);
      ran();
      return "rowVersion";
    }),
  },
  {
    id: "fields-not-decoded",
    rule: "FLD-02",
    does: "splits the raw query, so that %2C is no comma",
    plant: deciding("fieldNames", (sound, ran) => (query) => {
      if (!/%2c/i.test(query)) return sound(query);
      ran();
      return query
        .split("&")
        .filter((pair) => pair.startsWith("fields="))
        .map((pair) => pair.slice(7));
    }),
  },
  {
    id: "fields-in-envelope",
    rule: "FLD-01",
    does: "wraps projected bodies in an envelope",
    plant: replying(projected, (reply) => withBody(reply, (body) => ({ data: body }))),
  },
  {
    id: "fields-as-array",
    rule: "FLD-01",
    does: "returns projected bodies as an array of one",
    plant: replying(projected, (reply) => withBody(reply, (body) => [body])),
  },
  {
    id: "projected-values-swapped",
    rule: "FLD-10",
    does: "reads columns by position, so that name and email change places when both are selected alone",
    plant: deciding("shape", (sound, ran) => (customer, shown, caller, request) => {
      if (shown.length !== 2 || !shown.includes("name") || !shown.includes("email"))
        return sound(customer, shown, caller, request);
      ran();
      return sound({ ...customer, name: customer.email, email: customer.name }, shown, caller, request);
    }),
  },
  {
    id: "fields-cached-by-path",
    rule: "FLD-01",
    does: "caches representations by id, and answers the next selection from there",
    plant: (ran) => () => {
      const shelf = new Map<string, { tag: string; body: string; query: string }>();
      return {
        async around(request, next) {
          const reply = await next(request);
          const tag = reply.headers.find(([name]) => name === "ETag")?.[1] ?? "";
          if (request.method !== "GET" || reply.status !== 200 || tag === "") return reply;
          const who = request.headers.find(([name]) => name.toLowerCase() === "authorization")?.[1];
          const key = `${request.path} ${who}`;
          const kept = shelf.get(key);
          if (kept !== undefined && kept.tag === tag) {
            if (kept.query !== request.query) ran();
            return { ...reply, body: kept.body };
          }
          shelf.set(key, { tag, body: String(reply.body), query: request.query });
          return reply;
        },
      };
    },
  },
  {
    id: "default-set-without-body",
    rule: "FLD-11",
    does: "returns an empty object when fields is absent",
    plant: replying(
      (reply, request) =>
        request.method === "GET" && reply.status === 200 && isRead(request) && !/fields=/.test(request.query),
      (reply) => withBody(reply, () => ({})),
    ),
  },
];
