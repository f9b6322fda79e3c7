/** What a service takes from what came before, or from what came long ago. */
import {
  asCurrent,
  customerOf,
  type Fault,
  has,
  instead,
  isRead,
  membersOf,
  type Plant,
  requesting,
  withIfMatch,
} from "../../fault.ts";
import { headerLines, type Reply, type Request, setHeader } from "../../service/http-socket.ts";
import { isWrite } from "../../service/seams.ts";
import type { Service } from "../../service/service.ts";
import {
  answered,
  by,
  empty,
  on,
  projectedRead,
  read,
  refused,
  showing,
  spoiling,
  type When,
  write,
} from "../../turn.ts";
import { gap } from "../../two-steps.ts";
import { privileged } from "../callers/tenants.ts";
import { withoutIfMatch } from "../if-match/refusals.ts";

const sentTag = (request: Request) => headerLines(request, "if-match").join().trim();

/** Merges a stale PUT that changes only what nobody else has changed since. */
const merging: Plant = (ran) => (service) => {
  const versions = new Map<string, { name: string; email: string }>();
  return {
    async around(request, next) {
      const customer = customerOf(request, service);
      if (customer !== undefined) versions.set(customer.tag, { name: customer.name, email: customer.email });
      const base = versions.get(sentTag(request));
      if (request.method !== "PUT" || customer === undefined || base === undefined)
        return await next(request);
      const { Name: name, Email: email } = await membersOf(request);
      const merges =
        customer.tag !== sentTag(request) &&
        name === base.name &&
        email !== base.email &&
        customer.email === base.email;
      if (!merges || customer.name === base.name) return await next(request);
      ran();
      const body = Buffer.from(JSON.stringify({ Name: customer.name, Email: email }));
      return await next({ ...withIfMatch(request, customer.tag), body: async () => body });
    },
  };
};

/** A tag serves once, whatever came of it, until it is read again. */
const usedUp: Plant = (ran) => (service) => {
  const used = new Set<string>();
  return {
    async around(request, next) {
      const customer = customerOf(request, service);
      if (customer === undefined) return await next(request);
      if (isRead(request)) used.delete(customer.tag);
      const isUsed = isWrite(request) && used.has(sentTag(request));
      if (isUsed) ran();
      const reply = await next(isUsed ? withIfMatch(request, '"used"') : request);
      if (reply.status === 400 && isWrite(request)) used.add(sentTag(request));
      return reply;
    },
  };
};

/** Checks the version that the last read has left in its cache, where there is one. */
const unlessRead =
  (forgetsWritten: boolean): Plant =>
  (ran) =>
  (service) => {
    const known = new Set<string>();
    return {
      async around(request, next) {
        const customer = customerOf(request, service);
        if (customer === undefined) return await next(request);
        const { formerTags } = customer;
        const isUnknown = !known.has(customer.id) && formerTags.length > 0 === forgetsWritten;
        const wrong = isWrite(request) && isUnknown && sentTag(request) !== customer.tag;
        if (wrong) ran();
        const reply = await next(wrong ? withIfMatch(request, customer.tag) : request);
        if (isRead(request)) known.add(customer.id);
        else if (forgetsWritten && reply.status < 300) known.delete(customer.id);
        return reply;
      },
    };
  };

/** A connection of the pool keeps the role of a request that failed, for the next one. */
const roleLeft =
  (caller: "limited" | "other", status: number): Plant =>
  (ran) =>
  (service) => {
    let left = false;
    return {
      async around(request, next) {
        const takes = left && isRead(request) && service.caller(request) === caller;
        left = false;
        if (takes) ran();
        const reply = await next(takes ? privileged(request, service) : request);
        left = reply.status === status && service.caller(request) === "main";
        return reply;
      },
    };
  };

/** Reads the tag, and the fields a moment later, where a PATCH may come between. */
const tornByPatch: Plant = (ran) => (service) => {
  const last = new Map<string, string>();
  return {
    async around(request, next) {
      const customer = customerOf(request, service);
      if (customer === undefined) return await next(request);
      if (request.method !== "GET") {
        const reply = await next(request);
        if (reply.status < 300) last.set(customer.id, request.method);
        return reply;
      }
      const { tag } = customer;
      await gap(2);
      const reply = await next(request);
      if (reply.status !== 200 || customer.tag === tag || last.get(customer.id) !== "PATCH") return reply;
      ran();
      return setHeader(reply, "ETag", tag);
    },
  };
};

const REMEMBERED = 60;

/** Knows the tags that it has shown last, and takes no other. */
const lastShown: Plant = (ran) => (service) => {
  const shown: string[] = [];
  return {
    async around(request, next) {
      const customer = customerOf(request, service);
      const sent = sentTag(request);
      const isForgotten = isWrite(request) && sent === customer?.tag && !shown.includes(sent);
      if (isForgotten) ran();
      const reply = await next(isForgotten ? withIfMatch(request, '"forgotten"') : request);
      const now = customerOf(request, service)?.tag;
      if (now !== undefined) {
        if (shown.includes(now)) shown.splice(shown.indexOf(now), 1);
        shown.push(now);
        if (shown.length > REMEMBERED) shown.shift();
      }
      return reply;
    },
  };
};

/** After so many customers the table of roles has been pushed out of memory. */
const CUSTOMERS = 20;

const former: When = ({ before, request }) =>
  before?.formerTags.includes(headerLines(request, "if-none-match").join().trim()) === true;
const escapeHtml = (value: unknown) => (typeof value === "string" ? value.replaceAll("&", "&amp;") : value);
const twice = ({ reply }: { reply: Reply }): Reply => ({
  ...reply,
  headers: [...reply.headers, ["ETag", '"of-a-proxy"']],
});

export const HISTORY_FAULTS: Fault[] = [
  {
    id: "stale-put-merged",
    rule: "IFM-50",
    does: "merges a stale PUT with the row, where nobody else has changed the same field",
    plant: merging,
  },
  {
    id: "tag-used-up-by-400",
    rule: "IFM-22",
    does: "takes a tag as a ticket, which a refused body uses up",
    plant: usedUp,
  },
  {
    id: "no-cache-put-stale",
    rule: "IFM-01",
    does: "compares a PUT with Cache-Control: no-cache with the origin, whose tags the gateway rewrites",
    plant: requesting(
      (request, service) =>
        request.method === "PUT" &&
        has("cache-control", "no-cache")(request) &&
        customerOf(request, service)?.tag === sentTag(request),
      (request) => withIfMatch(request, '"of-the-origin"'),
    ),
  },
  {
    id: "two-tags-of-put",
    rule: "ETG-07",
    does: "adds a second ETag line to the answer of a PUT, by a proxy that tags what it passes on",
    plant: on(write("PUT")).answers(twice),
  },
  {
    id: "two-tags-of-412",
    rule: "IFM-07",
    does: "adds a second ETag line to a 412, by a proxy that tags what it passes on",
    plant: on(write("PUT", 412)).answers(twice),
  },
  {
    id: "unread-customer-unchecked",
    rule: "IFM-23",
    mode: "full",
    does: "checks the version that the last read has left in its cache, and none where nobody has read",
    plant: unlessRead(false),
  },
  {
    id: "unread-version-unchecked",
    rule: "IFM-23",
    mode: "full",
    does: "empties its cache with each write, and checks nothing before the next read fills it",
    plant: unlessRead(true),
  },
  {
    id: "limited-keeps-role-of-refused",
    rule: "AUT-16",
    does: "leaves the role of a request that failed in its session, for the next one",
    plant: roleLeft("limited", 400),
  },
  {
    id: "other-tenant-keeps-scope-of-refused",
    rule: "AUT-08",
    does: "leaves the tenant of a write without a condition in its session, for the next request",
    plant: roleLeft("other", 428),
  },
  {
    id: "torn-by-patch",
    rule: "ATM-06",
    mode: "full",
    does: "reads tag and fields by two statements, which a PATCH runs between since it takes no lock",
    plant: tornByPatch,
  },
  {
    id: "patch-told-later-tag",
    rule: "ATM-08",
    mode: "full",
    does: "reads the tag for the answer of a PATCH after its transaction",
    plant: on(write("PATCH")).answers(async ({ reply, customer }) => {
      await gap(2);
      return setHeader(reply, "ETag", customer?.tag);
    }),
  },
  {
    id: "tags-forgotten",
    rule: "ENV-09",
    alsoRun: ["IFM-23", "IFM-36"],
    does: "keeps the tags that it has shown last, and takes no other for current",
    plant: lastShown,
  },
  {
    id: "roles-forgotten",
    rule: "ENV-09",
    alsoRun: ["IFM-46"],
    does: "keeps roles in a cache that its customers push them out of, and then has none",
    plant: requesting(
      (request, service: Service) =>
        isRead(request) && service.caller(request) === "limited" && service.customers.size > CUSTOMERS,
      privileged,
    ),
  },
  {
    id: "deleted-by-body",
    rule: "AUT-17",
    does: "binds every member of a body to the row, the mark of its soft delete too",
    plant: on(write(undefined), ({ body }) => "isDeleted" in body).answers(
      spoiling(() => ({ removed: true })),
    ),
  },
  {
    id: "limited-304-for-former",
    rule: "ETG-16",
    does: "keeps a copy for the limited role, and confirms any tag that it has had",
    plant: on(read(), by("limited"), former).answers(empty(304)),
  },
  {
    id: "tombstone-412",
    rule: "ORD-05",
    does: "compares a write to a deleted customer with the version of its tombstone",
    plant: on(answered(404), ({ request, before, sent }) =>
      Boolean(request.method === "PUT" && before?.removed && before.formerTags.includes(sent ?? "")),
    ).answers(refused(412)),
  },
  {
    id: "401-counted-as-428",
    rule: "MET-05",
    does: "counts whatever its filters refuse before a write as a missing precondition",
    plant: instead("counted", (sound, reply, request) =>
      reply.status === 401 && isWrite(request) ? ["required"] : sound,
    ),
  },
  {
    id: "projection-escaped-for-html",
    rule: "FLD-20",
    mode: "full",
    does: "escapes projections for HTML, since a page asks for them",
    plant: on(projectedRead, ({ customer }) => customer?.name.includes("&") === true).answers(
      showing((body) =>
        Object.fromEntries(Object.entries(body).map(([name, value]) => [name, escapeHtml(value)])),
      ),
    ),
  },
  {
    id: "escapes-kept",
    rule: "FLD-20",
    does: "cuts strings out of a body without looking at the escapes of JSON",
    plant: (ran) => () => ({
      async around(request, next) {
        const text = isWrite(request) ? (await request.body()).toString("utf8") : "";
        if (!/\\u[0-9a-f]{4}/.test(text)) return await next(request);
        ran();
        const body = Buffer.from(text.replaceAll("\\u", "\\\\u"));
        return await next({ ...request, body: async () => body });
      },
    }),
  },
  {
    id: "if-match-with-underscore",
    rule: "IFM-21",
    does: "reads its variables as CGI does, where If_Match and If-Match are one",
    plant: asCurrent((request) => withoutIfMatch(request) && headerLines(request, "if_match").length > 0),
  },
];
