/** What ORMs, hand-written SQL and counters get wrong beyond a single write: chains of versions, bodies, branches that are not counted. */
import { type Fault, instead, type Plant } from "../fault.ts";
import { headerLines, type Reply, setHeader } from "../service/http-socket.ts";
import type { Customer } from "../service/seams.ts";
import {
  answered,
  by,
  neverThere,
  newTag,
  object,
  on,
  overwriting,
  projectedRead,
  read,
  refused,
  showing,
  spoiling,
  tagged,
  untagged,
  write,
} from "../turn.ts";
import { keeping } from "./etag/versions.ts";
import { storing } from "./writes.ts";

/** Tags that stay although the customer is written. */
const kept = new WeakMap<Customer, string>();

/** Two names that a column takes for the same. */
type Collation = readonly [
  id: string,
  rule: string,
  method: string,
  does: string,
  fold: (name: string) => string,
];

const withoutAccents = (name: string) => name.normalize("NFD").replace(/\p{M}/gu, "");

const COLLATIONS: readonly Collation[] = [
  ["letter-case-keeps-tag", "ETG-08", "PUT", "without case", (name) => name.toLowerCase()],
  ["blank-keeps-tag", "ETG-11", "PATCH", "without final blanks", (name) => name.trimEnd()],
  ["accent-keeps-tag", "ETG-08", "PUT", "without accents", withoutAccents],
];

const DAMAGE: readonly (readonly [id: string, does: string, damage: (name: string) => string])[] = [
  ["plus-becomes-blank", "decodes names as a form does", (name) => name.replaceAll("+", " ")],
  ["backslash-lost", "strips backslashes as an escape", (name) => name.replaceAll("\\", "")],
  ["quotes-doubled", "escapes double quotes by hand", (name) => name.replaceAll('"', '""')],
  ["markup-stripped", "strips what looks like markup", (name) => name.replace(/<[^>]*>/g, "")],
  ["blanks-run-together", "runs blanks together as HTML shows them", (name) => name.replace(/[ \t]+/g, " ")],
  [
    "straight-quotes",
    "replaces what Word makes of quotes and dashes",
    (name) => name.replace(/[\u2018-\u201d]/g, "'"),
  ],
  ["reads-html-entities", "decodes HTML on the way in", (name) => name.replaceAll("&amp;", "&")],
  ["cut-at-1000", "cuts names at 1,000 characters", (name) => name.slice(0, 1000)],
  ["sql-comments-lost", "removes what a filter takes for SQL", (name) => name.replaceAll("--", "")],
  ["cut-at-50", "cuts names at the width of an old column", (name) => name.slice(0, 50)],
  ["cut-at-nul", "passes names to a library that ends them at U+0000", (name) => name.split("\0")[0] ?? ""],
  [
    "stores-html-entities",
    "escapes what it stores for HTML",
    (text) => text.replaceAll("&", "&amp;").replaceAll("'", "&#39;"),
  ],
  [
    "stores-doubled-apostrophes",
    "doubles apostrophes for SQL and binds them as well",
    (text) => text.replaceAll("'", "''"),
  ],
  [
    "stores-no-emoji",
    "keeps names in a column of three bytes a character",
    (text) => text.replace(/[\u{10000}-\u{10ffff}].*/u, ""),
  ],
  [
    "stores-latin-1-as-utf-8",
    "reads the bytes of a body as Latin-1",
    (text) => Buffer.from(text, "utf8").toString("latin1"),
  ],
  [
    "stores-title-case",
    "writes each word of a name with a capital",
    (text) => text.toLowerCase().replace(/\b[a-z]/g, (letter) => letter.toUpperCase()),
  ],
  [
    "stores-references",
    "pastes names into the replacement of a pattern, where $1 is a reference",
    (text) => text.replace(/\$\d/g, ""),
  ],
  ["stores-one-line", "keeps names in a file of one line each", (text) => text.replace(/\n/g, " ")],
  [
    "guards-spreadsheets",
    "puts an apostrophe before a sign of equality, for its exports",
    (text) => text.replace(/^=/, "'="),
  ],
  ["fills-templates", "fills names into a page twice", (text) => text.replace(/\{\{.*?\}\}/g, "")],
  ["strips-joiners", "removes characters that have no width", (text) => text.replace(/\u200d/g, "")],
  [
    "stores-numbers",
    "keeps values in a column whose type follows its value",
    (text) => (/^\d[\de]*$/.test(text) ? String(Number(text)) : text),
  ],
  ["stores-null", "takes the word null for no value", (text) => (text === "null" ? "" : text)],
  ["stores-true", "takes the word true for a flag", (text) => (text === "true" ? "1" : text)],
  [
    "stores-dates",
    "reads a name that has the form of a date as one, and stores its time as well",
    (text) => (/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00.000Z` : text),
  ],
  [
    "stores-parsed-text",
    "reads a name that is JSON as what it says, and writes it back in its own way",
    (text) => (/^\[.*\]$/.test(text) ? JSON.stringify(JSON.parse(text)) : text),
  ],
  ["strips-accents", "folds accents away, for a search index", withoutAccents],
];

/** Damages the names that it stores. */
const damaging = (damage: (name: string) => string): Plant =>
  storing(undefined, (change) =>
    typeof change.name === "string" ? { ...change, name: damage(change.name) } : change,
  );

const DAMAGED_EMAILS: readonly (readonly [id: string, does: string, damage: (email: string) => string])[] = [
  ["stores-64-of-email", "cuts emails at its column's end", (email) => email.slice(0, 64)],
  ["strips-plus-of-email", "drops what follows a plus sign", (email) => email.replace(/\+[^@]*/, "")],
  [
    "doubles-apostrophe-of-email",
    "escapes an apostrophe for SQL and binds it too",
    (email) => email.replaceAll("'", "''"),
  ],
];

export const CHAIN_AND_BODY_FAULTS: Fault[] = [
  ...COLLATIONS.map(
    ([id, rule, method, how, fold]): Fault => ({
      id,
      rule,
      does: `bumps the version where a comparison ${how} sees a change (${method})`,
      plant: (ran) => (service) => ({
        // The method is not known where tags are minted.
        store: (customer, change, request) => {
          const same =
            change.name != null && change.name !== customer.name && fold(change.name) === fold(customer.name);
          Object.assign(customer, change);
          if (same && request.method === method) {
            ran();
            kept.set(customer, customer.tag);
          }
        },
        mint: (version, before, after) => {
          const tag = kept.get(after);
          kept.delete(after);
          return before !== undefined && tag !== undefined ? tag : service.deployment.tag(version, after.id);
        },
      }),
    }),
  ),
  ...DAMAGE.map(([id, does, damage]): Fault => ({ id, rule: "FLD-20", does, plant: damaging(damage) })),
  ...DAMAGED_EMAILS.map(
    ([id, does, damage]): Fault => ({
      id,
      rule: "FLD-20",
      does,
      plant: storing(undefined, (change) =>
        typeof change.email === "string" ? { ...change, email: damage(change.email) } : change,
      ),
    }),
  ),
  {
    id: "empty-email-not-stored",
    rule: "FLD-20",
    does: "asks `if (email)` whether a body has an email, and keeps the stored one where it is empty",
    plant: storing(undefined, ({ email, ...change }) =>
      email === undefined || email === "" ? change : { ...change, email },
    ),
  },
  {
    id: "empty-name-not-shown",
    rule: "FLD-20",
    does: "leaves empty members out of its answers",
    plant: on(read()).answers(
      showing((body) => Object.fromEntries(Object.entries(body).filter(([, value]) => value !== ""))),
    ),
  },
  {
    id: "loses-big-bodies",
    rule: "FLD-20",
    does: "hands bodies above 8 kB to a job, which fails, and answers as if it had stored them",
    plant: (ran) => () => ({
      store: (customer, change, request) => {
        if (Number(headerLines(request, "content-length").join()) > 8192) ran();
        else Object.assign(customer, change);
      },
    }),
  },
  {
    id: "tag-wraps-at-16",
    rule: "ETG-15",
    does: "keeps the version in four bits",
    plant: wrapping(16),
  },
  {
    id: "every-if-none-match-304",
    rule: "ETG-16",
    does: "answers 304 wherever If-None-Match comes, whatever it holds",
    plant: on(read(), ({ request }) => headerLines(request, "if-none-match").length > 0).answers(
      ({ reply }) => ({ ...reply, status: 304, body: "" }),
    ),
  },
  {
    id: "no-tag-in-304",
    rule: "ETG-16",
    does: "drops the ETag of a 304",
    deployment: { conditionalReads: true },
    plant: on(answered(304)).answers(untagged),
  },
  {
    id: "stranger-428-tells",
    rule: "AUT-10",
    does: "looks for the customer in all tenants before it asks for If-Match",
    plant: on(answered(428), by("other"), neverThere).answers(refused(404)),
  },
  {
    id: "updates-the-id-in-the-body",
    rule: "FLD-15",
    does: "checks the customer of the address, and updates WHERE id is that of the body",
    plant: on(write("PUT")).answers(({ body, service, before, customer, reply }) => {
      const other = service.customers.get(String(body[service.deployment.members.id]));
      if (other === undefined || other.id === customer?.id || customer === undefined) return reply;
      const { name, email, tag } = customer;
      Object.assign(other, { name, email, tag });
      Object.assign(customer, before);
      return reply;
    }),
  },
  {
    id: "patch-applied-up-to-the-fault",
    rule: "FLD-18",
    does: "sets the members of a PATCH one after the other, and refuses it at the first that is bad",
    plant: on(
      ({ request, reply, body, service }) =>
        request.method === "PATCH" &&
        reply.status === 400 &&
        typeof body[service.deployment.members.name] === "string" &&
        typeof body[service.deployment.members.email] === "number",
    ).answers(overwriting(({ body, service }) => ({ name: String(body[service.deployment.members.name]) }))),
  },
  {
    id: "name-in-other-case-not-stored",
    rule: "FLD-20",
    does: "stores a name that differs from the stored one, compared by a collation without letter case",
    plant: (ran) => () => ({
      store(customer, { name = customer.name, ...change }) {
        const same = name !== customer.name && name?.toLowerCase() === customer.name?.toLowerCase();
        if (same) ran();
        Object.assign(customer, change, same ? {} : { name });
      },
    }),
  },
  {
    id: "patch-stores-null",
    rule: "FLD-18",
    does: "merges a PATCH into the row without its types, so that null is stored",
    plant: on(
      (turn) =>
        turn.request.method === "PATCH" &&
        turn.reply.status === 400 &&
        turn.body[turn.service.deployment.members.name] === null,
    ).answers(async ({ before, request, service: { deployment }, customer, send }) => {
      const body = Buffer.from(JSON.stringify({ [deployment.members.name]: before?.name }));
      const reply = await send({ ...request, body: async () => body });
      if (reply.status < 300) Object.assign(customer ?? {}, { name: null });
      return reply;
    }),
  },
  {
    id: "body-number-sets-version",
    rule: "FLD-19",
    does: "maps RowVersion of a body onto the version column",
    plant: on((turn) => write("PUT")(turn) && typeof turn.body["RowVersion"] === "number").answers(
      ({ reply, customer, body, service: { deployment } }) => {
        const tag = deployment.tag(Number(body["RowVersion"]), customer?.id ?? "");
        Object.assign(customer ?? {}, { tag });
        return setHeader(reply, "ETag", tag);
      },
    ),
  },
  ...(
    [
      ["answers-former-row", "IFM-02", "PUT"],
      ["patch-answers-former-row", "IFM-30", "PATCH"],
    ] as const
  ).map(
    ([id, rule, method]): Fault => ({
      id,
      rule,
      does: `answers a ${method} with the row that it read before`,
      deployment: { putAnswer: 200, patchAnswer: 200 },
      plant: on(write(method, 200)).answers(
        showing((body, { before, service: { deployment } }) => ({
          ...body,
          [deployment.members.name]: before?.name,
        })),
      ),
    }),
  ),
  {
    id: "emoji-answered-500",
    rule: "FLD-20",
    does: "keeps names in a column of three bytes a character, and lets its refusal out as 500",
    plant: on(
      (turn) => write("PUT")(turn) && /[\u{10000}-\u{10ffff}]/u.test(JSON.stringify(turn.body)),
    ).answers(refused(500)),
  },
  {
    id: "put-takes-status",
    rule: "FLD-21",
    does: "binds a status in the body of PUT",
    plant: instead("writable", () => ["name", "email", "status"]),
  },
  {
    id: "put-resets-status",
    rule: "FLD-21",
    does: "writes a whole new row, whose status is that of a new customer",
    plant: storing("PUT", (change) => ({ ...change, status: "New" })),
  },
  {
    id: "prefer-answers-former-tag",
    rule: "ETG-17",
    does: "builds the answer to a write with Prefer before the commit, and so tells the former tag",
    plant: on(write(undefined), ({ request }) => headerLines(request, "prefer").length > 0).answers(
      tagged(({ before }) => before?.tag),
    ),
  },
  {
    id: "answers-later-tag",
    rule: "ATM-08",
    does: "reads the row again after the update to answer its tag, which by then may be another writer's",
    plant: on(write("PUT")).answers(async (turn) => {
      await Bun.sleep(5);
      return setHeader(turn.reply, "ETag", turn.customer?.tag);
    }),
  },
  {
    id: "email-alone-keeps-tag",
    rule: "ETG-08",
    does: "bumps the version in a trigger that watches the name column only",
    plant: keeping((before, after) => before.name === after.name && before.email !== after.email),
  },
  {
    id: "the-word-null-is-stored-as-null",
    rule: "FLD-20",
    does: "takes the text null for an absent value, and stores null as the name",
    plant: storing(undefined, (change) => (change.name === "null" ? { ...change, name: null } : change)),
  },
  {
    id: "limited-read-moves-tag",
    rule: "ETG-04",
    does: "stores when a support agent last looked at the customer, in the versioned row",
    plant: on(read(), by("limited")).answers(spoiling((customer, turn) => ({ tag: newTag(customer, turn) }))),
  },
  {
    id: "weak-412-not-counted",
    rule: "MET-09",
    does: "refuses weak tags in a parser that knows no counter",
    plant: instead("counted", (right, reply, request) =>
      reply.status === 412 && /^\s*W\//.test(headerLines(request, "if-match").join()) ? [] : right,
    ),
  },
  {
    id: "stores-latin-1",
    rule: "FLD-20",
    does: "keeps names in a column that knows Latin-1 alone",
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the range is what the column holds
    plant: damaging((name) => name.replace(/[^\x00-\xff]/g, "?")),
  },
  {
    id: "projection-from-a-search-index",
    rule: "FLD-20",
    does: "answers projections from a search index, which keeps emails in small letters",
    plant: on(projectedRead).answers(
      showing((body, { service: { deployment } }) => {
        const { email } = deployment.members;
        return email in body ? { ...body, [email]: String(body[email]).toLowerCase() } : body;
      }),
    ),
  },
  {
    id: "status-of-one-projection",
    rule: "FLD-10",
    does: "shows a constant in place of the status where it is asked for beside other fields",
    plant: on(projectedRead, ({ request }) => request.query.includes(",")).answers(
      showing((body, { service: { deployment } }) =>
        deployment.members.status in body ? { ...body, [deployment.members.status]: "Unknown" } : body,
      ),
    ),
  },
  {
    id: "projection-outlives-delete",
    rule: "ORD-05",
    does: "serves projections from a view that keeps deleted rows",
    plant: on(
      read(404),
      ({ request, before }) => /fields=/.test(request.query) && before?.removed === true,
    ).answers(({ before, service: { deployment } }) =>
      object({ [deployment.members.name]: before?.name }, before?.tag),
    ),
  },
  {
    id: "cached-projection-outlives-delete",
    rule: "ORD-05",
    does: "keeps each projection that was read in a cache, from which a DELETE takes the whole customer alone",
    plant: (ran) => (service) => {
      const kept = new Map<string, Reply>();
      return {
        async around(request, next) {
          const reply = await next(request);
          if (request.method !== "GET" || !/fields=/.test(request.query)) return reply;
          const key = `${service.caller(request)} ${request.path} ${request.query}`;
          if (reply.status === 200) kept.set(key, reply);
          const cached = reply.status === 404 ? kept.get(key) : undefined;
          if (cached === undefined) return reply;
          ran();
          return cached;
        },
      };
    },
  },
  {
    id: "losers-412-without-etag",
    rule: "ATM-02",
    does: "answers the loser of a row lock from a handler that has no row at hand",
    plant: on(answered(412), ({ met, customer }) => met && customer?.removed === false).answers(untagged),
  },
  {
    id: "tombstone-before-428",
    rule: "ORD-14",
    does: "looks up tombstones in a filter that stands before the check of If-Match",
    plant: on(answered(428), ({ before }) => before?.removed === true).answers(refused(404)),
  },
];

/** Counts the writes of a customer in so small a space that tags come back. */
export function wrapping(after: number): Plant {
  return instead(
    "mint",
    (_sound, _version, _before, { formerTags, id }) => `"w${formerTags.length % after}-${id.slice(0, 4)}"`,
  );
}
