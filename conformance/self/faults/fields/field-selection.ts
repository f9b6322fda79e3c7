/** FLD: projection (2.2, 4.1). */

import { customerOf, deciding, type Fault, instead, isRead, type Plant, requesting } from "../../fault.ts";
import { headerLines } from "../../service/http-socket.ts";
import { fieldsParameter, type Seams } from "../../service/seams.ts";
import { FIELDS } from "../../service/sound-options.ts";
import {
  as,
  by,
  byHead,
  every,
  isThere,
  object,
  on,
  projectedRead,
  read,
  refused,
  showing,
  type When,
  wholeRead,
} from "../../turn.ts";

/** A registry that knows more or fewer names. */
const knowing = (
  wrong: (name: string, sound: ReturnType<Seams["known"]>) => ReturnType<Seams["known"]>,
): Plant => instead("known", (sound, name) => wrong(name, sound));

/** Every field that was not requested comes with this value. */
const filling = (value: unknown): Plant =>
  on(projectedRead).answers(
    showing((body, { service: { deployment } }) => ({
      ...Object.fromEntries(FIELDS.map((field) => [deployment.members[field], value])),
      ...body,
    })),
  );

/** Answers some projections with the default set. */
const forgetting = (when: When): Plant =>
  on(projectedRead, when).answers(({ request, send }) => send({ ...request, query: "" }));

/** Ways of asking for a projection that lead past the code that selects. */
const FORGETFUL: readonly (readonly [id: string, does: string, when: When])[] = [
  [
    "for-limited",
    "shapes the answers to a role by its own view, and looks at no fields there",
    by("limited"),
  ],
  [
    "at-capitals",
    "redirects the id in capitals within, and loses the query on the way",
    ({ request }) => /\/customers\/[^/]*[A-F][^/]*$/.test(request.path),
  ],
  [
    "over-http-10",
    "stands behind a gateway that passes on requests of HTTP/1.0 without their query",
    ({ request }) => request.version === "1.0",
  ],
  [
    "with-if-match",
    "looks at conditions in a filter that loads and answers the whole customer",
    ({ request }) => headerLines(request, "if-match").length > 0,
  ],
  [
    "behind-others",
    "looks for fields at the beginning of the query alone",
    ({ request }) => !request.query.startsWith("fields="),
  ],
];

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
  [
    "registry-knows-other-words",
    "lets the names of its columns pass, which nothing shows then",
    "FLD-08",
    (name) => ["mail", "emailAddress", "fullName", "state"].includes(name),
  ],
  ["all-is-every-field", "takes all for every field", "FLD-08", (name) => name.toLowerCase() === "all"],
  [
    "long-unknown-field-ignored",
    "drops names longer than any of its columns before it looks them up",
    "FLD-08",
    (name) => name.length > 40,
  ],
  [
    "unknown-field-grouped-away",
    "joins the names with its registry, and drops those that come twice",
    "FLD-03",
    (name, names) => names.indexOf(name) !== names.lastIndexOf(name),
  ],
  [
    "fields-cut-at-200",
    "looks at the first 200 names of a list",
    "FLD-03",
    (name, names) => names.indexOf(name) >= 200,
  ],
];

export const FIELD_FAULTS: Fault[] = [
  ...SLOPPY.map(
    ([id, does, rule, wrongly]): Fault => ({
      id,
      rule,
      does,
      plant: instead("fieldNames", (names, _query, { seams }) => {
        const kept = names?.filter(
          (name) => name === "" || seams.known(name, names) !== undefined || !wrongly(name, names),
        );
        return kept?.length === 0 ? (id.startsWith("star") ? [...FIELDS] : ["id"]) : kept;
      }),
    }),
  ),
  ...([404, 422, 500] as const).map(
    (status): Fault => ({
      id: `unknown-field-answered-${status}`,
      rule: "FLD-03",
      does: `answers an unknown field with ${status}`,
      plant: on(read(400)).answers(as(status)),
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
  ...FORGETFUL.map(
    ([id, does, when]): Fault => ({
      id: `fields-ignored-${id}`,
      rule: "FLD-01",
      does,
      plant: forgetting(when),
    }),
  ),
  {
    id: "fields-ignored-after-patch",
    rule: "FLD-01",
    does: "answers the first read after a PATCH with the entity that the session still holds",
    plant: (ran) => (service) => {
      const held = new Set<string>();
      return {
        async around(request, next) {
          const id = customerOf(request, service)?.id ?? "";
          if (isRead(request) && held.delete(id) && request.query !== "") {
            ran();
            return await next({ ...request, query: "" });
          }
          const reply = await next(request);
          if (request.method === "PATCH" && reply.status < 300) held.add(id);
          return reply;
        },
      };
    },
  },
  {
    id: "unrequested-null-for-limited",
    rule: "FLD-09",
    does: "fills the view of a role with null where a field was not requested",
    plant: on(projectedRead, by("limited")).answers(
      showing((body, { service: { deployment } }) => ({ [deployment.members.status]: null, ...body })),
    ),
  },
  {
    id: "unrequested-null",
    rule: "FLD-09",
    does: "returns null for every field that was not requested",
    plant: filling(null),
  },
  {
    id: "unrequested-empty",
    rule: "FLD-01",
    does: "returns an empty string for every field that was not requested",
    plant: filling(""),
  },
  {
    id: "id-always-there",
    rule: "FLD-01",
    does: "returns the id whether it was requested or not",
    plant: instead("shape", (body, { id }, _shown, _caller, _request, { deployment }) => ({
      [deployment.members.id]: id,
      ...body,
    })),
  },
  {
    id: "last-field-dropped",
    rule: "FLD-02",
    does: "forgets the last of three or more names",
    plant: instead("fieldNames", (names) => ((names?.length ?? 0) < 3 ? names : names?.slice(0, -1))),
  },
  ...FIELDS.filter((field) => field !== "name").map(
    (field): Fault => ({
      id: `${field}-not-selectable`,
      rule: "FLD-01",
      does: `does not know the registry name ${field}`,
      plant: knowing((name, sound) => (name.toLowerCase() === field ? undefined : sound)),
    }),
  ),
  {
    id: "field-names-case-sensitive",
    rule: "FLD-05",
    does: "knows names in lower case alone",
    plant: knowing((name, sound) => (name === name.toLowerCase() ? sound : undefined)),
  },
  {
    id: "field-names-case-sensitive-for-limited",
    rule: "FLD-05",
    does: "looks up in the policy of a role the name as it was spelled",
    plant: on(read(), by("limited"), ({ request }) => /fields=\w*[A-Z]/.test(request.query)).answers(
      refused(403),
    ),
  },
  {
    id: "turkish-field-names",
    rule: "FLD-05",
    does: "lower-cases names in a locale where ID becomes ıd",
    plant: knowing((name, sound) => (name.includes("I") ? undefined : sound)),
  },
  {
    id: "created-at-selectable",
    rule: "FLD-06",
    does: "lets createdAt be requested",
    plant: knowing((name, sound) => (name.toLowerCase() === "createdat" ? "createdAt" : sound)),
  },
  {
    id: "created-at-selectable-for-limited",
    rule: "FLD-06",
    does: "takes the columns of a role's view for its registry, and CreatedAt is one of them",
    plant: on(read(400), by("limited"), isThere, ({ request }) =>
      /fields=createdat$/i.test(request.query),
    ).answers(({ before }) => object({ CreatedAt: before?.createdAt }, before?.tag)),
  },
  {
    id: "created-at-of-new-customer",
    rule: "FLD-06",
    does: "answers reads of a customer that was never updated from the event of its create",
    plant: on(
      read(400),
      ({ before }) => before?.formerTags.length === 0,
      ({ request }) => /fields=createdat$/i.test(request.query),
    ).answers(({ before }) => object({ CreatedAt: before?.createdAt }, before?.tag)),
  },
  {
    id: "row-version-selectable",
    rule: "FLD-07",
    does: "lets rowVersion be requested",
    plant: knowing((name, sound) => (name.toLowerCase() === "rowversion" ? "rowVersion" : sound)),
  },
  {
    id: "fields-not-decoded",
    rule: "FLD-02",
    does: "splits the raw query, so that %2C is no comma",
    plant: instead("fieldNames", (names, query) =>
      /%2c/i.test(query)
        ? query
            .split("&")
            .filter((pair) => pair.startsWith("fields="))
            .map((pair) => pair.slice(7))
        : names,
    ),
  },
  {
    id: "fields-decoded-by-capitals",
    rule: "FLD-02",
    does: "replaces %2C in the query by a comma, and not %2c",
    plant: on(read(), ({ request }) => request.query.includes("%2c")).answers(refused(400)),
  },
  {
    id: "fields-in-envelope",
    rule: "FLD-01",
    does: "wraps projected bodies in an envelope",
    plant: on(projectedRead).answers(showing((body) => ({ data: body }))),
  },
  {
    id: "fields-as-array",
    rule: "FLD-01",
    does: "returns projected bodies as an array of one",
    plant: on(projectedRead).answers(showing((body) => [body])),
  },
  {
    id: "projected-values-swapped",
    rule: "FLD-10",
    does: "reads columns by position, so that name and email change places when both are selected alone",
    plant: instead("shape", (body, { name, email }, shown, _caller, _request, { deployment: { members } }) =>
      shown.length === 2 && shown.includes("name") && shown.includes("email")
        ? { [members.name]: email, [members.email]: name }
        : body,
    ),
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
    plant: on(wholeRead).answers(showing(() => ({}))),
  },
  {
    id: "empty-name-means-all",
    rule: "FLD-13",
    does: "takes an empty name at the end of a list for the default set",
    plant: requesting(
      (request) => isRead(request) && /^fields=\w[^&]*,$/.test(request.query),
      (request) => ({ ...request, query: "" }),
    ),
  },
  {
    id: "repeated-names-503",
    rule: "FLD-13",
    does: "selects a column twice, and its database driver gives up",
    plant: on(({ request }) => isRead(request) && /fields=(\w+),\1\b/.test(request.query)).answers(
      refused(503),
    ),
  },
  {
    id: "field-list-cut",
    rule: "FLD-14",
    does: "cuts a long list of names off, and shows everything where a name is cut in the middle",
    plant: on(read(), ({ request }) => request.query.length > 3000).answers(
      showing((body) => ({ ...body, Status: "Active" })),
    ),
  },
  {
    id: "unknown-field-known-to-policy",
    rule: "FLD-03",
    does: "still knows a field that was dropped from the model, and shows nothing for it",
    plant: on(read(400), ({ request }) => /fields=(name,)?phone$/.test(request.query)).answers(({ before }) =>
      object({}, before?.tag),
    ),
  },
  {
    id: "default-set-with-null-status",
    rule: "FLD-10",
    does: "joins the table of statuses where the status is asked for, and otherwise shows null",
    plant: on(wholeRead).answers(showing((body) => ({ ...body, Status: null }))),
  },
  {
    id: "unknown-field-by-head",
    rule: "FLD-03",
    does: "checks the names where it shapes the body, which HEAD has not",
    plant: on(read(400), isThere, byHead).answers(({ before }) => object({}, before?.tag)),
  },
  {
    id: "unknown-field-of-limited-403",
    rule: "FLD-03",
    does: "asks the policy of a role before the registry, and forbids what it does not know",
    plant: on(read(400), by("limited"), isThere).answers(refused(403)),
  },
  {
    id: "two-versions-answer-in-turn",
    rule: "FLD-11",
    does: "runs two versions side by side, one of which has CreatedAt in its default set",
    plant: (ran) =>
      on(wholeRead, every(2)).answers(showing((body) => ({ ...body, CreatedAt: "2026-11-27T00:00:00Z" })))(
        ran,
      ),
  },
];
