/** What ORMs, hand-written SQL and counters get wrong beyond a single write: chains of versions, bodies, branches that are not counted. */
import {
  customerOf,
  deciding,
  type Fault,
  isCustomer,
  isRead,
  membersOf,
  replying,
  withBody,
} from "../fault.ts";
import { getHeader, headerLines, setHeader } from "../service/http-socket.ts";
import type { Customer } from "../service/seams.ts";

/** Tags that stay although the customer is written. */
const kept = new WeakMap<Customer, string>();
const accepted = (status: number) => status >= 200 && status < 300;

/** Two names that a column takes for the same. */
type Collation = readonly [
  id: string,
  rule: string,
  method: string,
  does: string,
  fold: (name: string) => string,
];

const COLLATIONS: readonly Collation[] = [
  [
    "letter-case-keeps-tag",
    "ETG-08",
    "PUT",
    "bumps the version where a comparison without case sees a change",
    (name) => name.toLowerCase(),
  ],
  [
    "blank-keeps-tag",
    "ETG-11",
    "PATCH",
    "bumps the version where a padded comparison sees a change",
    (name) => name.trimEnd(),
  ],
  [
    "accent-keeps-tag",
    "ETG-08",
    "PUT",
    "bumps the version where a comparison without accents sees a change",
    (name) => name.normalize("NFD").replace(/\p{M}/gu, ""),
  ],
];

const DAMAGE: readonly (readonly [id: string, does: string, damage: (name: string) => string])[] = [
  ["plus-becomes-blank", "decodes names as a form does", (name) => name.replaceAll("+", " ")],
  ["backslash-lost", "strips backslashes as an escape", (name) => name.replaceAll("\\", "")],
  ["quotes-doubled", "escapes double quotes by hand", (name) => name.replaceAll('"', '""')],
  ["markup-stripped", "strips what looks like markup", (name) => name.replace(/<[^>]*>/g, "")],
  ["cut-at-50", "cuts names at the width of an old column", (name) => name.slice(0, 50)],
  ["cut-at-nul", "passes names to a library that ends them at U+0000", (name) => name.split("\0")[0] ?? ""],
];

export const CHAIN_AND_BODY_FAULTS: Fault[] = [
  ...COLLATIONS.map(
    ([id, rule, method, does, fold]): Fault => ({
      id,
      rule,
      does: `${does} (${method})`,
      plant: (ran) => (service) => ({
        // The method is not known where tags are minted.
        store: (customer, change) => {
          const same =
            change.name != null && change.name !== customer.name && fold(change.name) === fold(customer.name);
          Object.assign(customer, change);
          if (same && (change.email === undefined) === (method === "PATCH")) {
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
  ...DAMAGE.map(
    ([id, does, damage]): Fault => ({
      id,
      rule: "FLD-20",
      does,
      plant: deciding("store", (sound, ran) => (customer, change, request) => {
        const { name } = change;
        const held = typeof name === "string" ? damage(name) : name;
        if (held !== name) ran();
        sound(customer, held === undefined ? change : { ...change, name: held }, request);
      }),
    }),
  ),
  {
    id: "tag-wraps-at-16",
    rule: "ETG-15",
    does: "keeps the version in four bits",
    plant: deciding("mint", (_sound, ran) => (_version, _before, { formerTags, id }) => {
      if (formerTags.length >= 16) ran();
      return `"w${formerTags.length % 16}-${id.slice(0, 4)}"`;
    }),
  },
  {
    id: "every-if-none-match-304",
    rule: "ETG-16",
    does: "answers 304 wherever If-None-Match comes, whatever it holds",
    plant: replying(
      (reply, request) =>
        isRead(request) && reply.status === 200 && headerLines(request, "if-none-match").length > 0,
      (reply) => ({ ...reply, status: 304, body: "" }),
    ),
  },
  {
    id: "no-tag-in-304",
    rule: "ETG-16",
    does: "drops the ETag of a 304",
    deployment: { conditionalReads: true },
    plant: replying(
      (reply) => reply.status === 304,
      (reply) => setHeader(reply, "ETag", undefined),
    ),
  },
  {
    id: "stranger-428-tells",
    rule: "AUT-10",
    does: "looks for the customer in all tenants before it asks for If-Match",
    plant: replying(
      (reply, request, service) =>
        reply.status === 428 &&
        service.caller(request) === "other" &&
        customerOf(request, service) === undefined,
      (_reply, _request, service) => service.refuse(404, "not-found"),
    ),
  },
  {
    id: "patch-stores-null",
    rule: "FLD-18",
    does: "merges a PATCH into the row without its types, so that null is stored",
    plant: (ran) => (service) => ({
      async around(request, next) {
        const customer = customerOf(request, service);
        const { name } = service.deployment.members;
        if (request.method !== "PATCH" || (await membersOf(request))[name] !== null || customer === undefined)
          return await next(request);
        ran();
        const body = Buffer.from(JSON.stringify({ [name]: customer.name }));
        const reply = await next({ ...request, body: async () => body });
        if (accepted(reply.status)) Object.assign(customer, { name: null });
        return reply;
      },
    }),
  },
  {
    id: "body-number-sets-version",
    rule: "FLD-19",
    does: "maps RowVersion of a body onto the version column",
    plant: replying(
      (reply, request) => request.method === "PUT" && accepted(reply.status),
      async (reply, request, service) => {
        const customer = customerOf(request, service);
        const version = (await membersOf(request))["RowVersion"];
        if (customer === undefined || typeof version !== "number") return reply;
        customer.tag = service.deployment.tag(version, customer.id);
        return setHeader(reply, "ETag", customer.tag);
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
      plant: (ran) => (service) => ({
        async around(request, next) {
          const former = customerOf(request, service)?.name;
          const reply = await next(request);
          if (request.method !== method || reply.status !== 200 || former === undefined) return reply;
          ran();
          return withBody(reply, (body) => ({ ...body, [service.deployment.members.name]: former }));
        },
      }),
    }),
  ),
  {
    id: "emoji-answered-500",
    rule: "FLD-20",
    does: "keeps names in a column of three bytes a character, and lets its refusal out as 500",
    plant: replying(
      (reply, request) => request.method === "PUT" && accepted(reply.status),
      async (reply, request, service) =>
        /[\u{10000}-\u{10ffff}]/u.test(JSON.stringify(await membersOf(request)))
          ? service.refuse(500, "internal")
          : reply,
    ),
  },
  {
    id: "put-takes-status",
    rule: "FLD-21",
    does: "binds a status in the body of PUT",
    plant: deciding("writable", (_sound, ran) => () => {
      ran();
      return ["name", "email", "status"];
    }),
  },
  {
    id: "put-resets-status",
    rule: "FLD-21",
    does: "writes a whole new row, whose status is that of a new customer",
    plant: deciding("store", (sound, ran) => (customer, change, request) => {
      if (request.method === "PUT" && customer.status !== "New") ran();
      sound(customer, request.method === "PUT" ? { ...change, status: "New" } : change, request);
    }),
  },
  {
    id: "answers-later-tag",
    rule: "ATM-08",
    does: "reads the row again after the update to answer its tag, which by then may be another writer's",
    plant: replying(
      (reply, request) => request.method === "PUT" && accepted(reply.status),
      async (reply, request, service) => {
        await Bun.sleep(5);
        return setHeader(reply, "ETag", customerOf(request, service)?.tag);
      },
    ),
  },
  {
    id: "email-alone-keeps-tag",
    rule: "ETG-08",
    does: "bumps the version in a trigger that watches the name column only",
    plant: deciding("mint", (sound, ran) => (version, before, after) => {
      if (before === undefined || before.name !== after.name || before.email === after.email)
        return sound(version, before, after);
      ran();
      return before.tag;
    }),
  },
  {
    id: "limited-read-moves-tag",
    rule: "ETG-04",
    does: "stores when a support agent last looked at the customer, in the versioned row",
    plant: replying(
      (reply, request, service) =>
        isRead(request) && reply.status === 200 && service.caller(request) === "limited",
      (reply, request, service) => {
        const customer = customerOf(request, service);
        if (customer !== undefined)
          Object.assign(customer, { tag: service.deployment.tag(service.nextVersion(), customer.id) });
        return reply;
      },
    ),
  },
  {
    id: "weak-412-not-counted",
    rule: "MET-09",
    does: "refuses weak tags in a parser that knows no counter",
    plant: deciding("counted", (sound, ran) => (reply, request) => {
      const weak = /^\s*W\//.test(headerLines(request, "if-match").join());
      if (reply.status !== 412 || !weak) return sound(reply, request);
      ran();
      return [];
    }),
  },
  {
    id: "stores-latin-1",
    rule: "FLD-20",
    does: "keeps names in a column that knows Latin-1 alone",
    plant: deciding("store", (sound, ran) => (customer, change, request) => {
      const { name } = change;
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the range is what the column holds
      const held = typeof name === "string" ? name.replace(/[^\x00-\xff]/g, "?") : name;
      if (held !== name) ran();
      sound(customer, held === undefined ? change : { ...change, name: held }, request);
    }),
  },
  {
    id: "status-of-one-projection",
    rule: "FLD-10",
    does: "shows a constant in place of the status where it is asked for beside other fields",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 200 && /fields=.*,/.test(request.query),
      (reply, _request, { deployment }) =>
        withBody(reply, (body) =>
          deployment.members.status in body ? { ...body, [deployment.members.status]: "Unknown" } : body,
        ),
    ),
  },
  {
    id: "projection-outlives-delete",
    rule: "ORD-05",
    does: "serves projections from a view that keeps deleted rows",
    plant: replying(
      (reply, request, service) =>
        isRead(request) &&
        reply.status === 404 &&
        /fields=/.test(request.query) &&
        customerOf(request, service)?.removed === true,
      (_reply, request, service) => {
        const customer = customerOf(request, service);
        const body = JSON.stringify({ [service.deployment.members.name]: customer?.name });
        return {
          status: 200,
          headers: [
            ["ETag", customer?.tag ?? ""],
            ["Content-Type", "application/json"],
          ],
          body,
        };
      },
    ),
  },
  {
    id: "losers-412-without-etag",
    rule: "ATM-02",
    does: "answers the loser of a row lock from a handler that has no row at hand",
    plant: (ran) => (service) => {
      const under = new Map<string, number>();
      return {
        async around(request, next) {
          const { path } = request;
          under.set(path, (under.get(path) ?? 0) + 1);
          const crowded = () => (under.get(path) ?? 0) > 1;
          const early = crowded();
          const reply = await next(request);
          const met = early || crowded();
          under.set(path, (under.get(path) ?? 1) - 1);
          if (!met || reply.status !== 412 || !isCustomer(request) || getHeader(reply, "etag") === undefined)
            return reply;
          if (customerOf(request, service)?.removed !== false) return reply;
          ran();
          return setHeader(reply, "ETag", undefined);
        },
      };
    },
  },
  {
    id: "tombstone-before-428",
    rule: "ORD-14",
    does: "looks up tombstones in a filter that stands before the check of If-Match",
    plant: replying(
      (reply, request, service) => reply.status === 428 && customerOf(request, service)?.removed === true,
      (_reply, _request, service) => service.refuse(404, "removed"),
    ),
  },
];
