/** IFM: what is compared with what, and what a refusal leaves behind (2.4.5, 3, 4.2, 4.3). */
import {
  accepting,
  customerOf,
  deciding,
  type Fault,
  isCustomer,
  replying,
  requesting,
  withIfMatch,
} from "../fault.ts";
import { headerLines, setHeader } from "../http-socket.ts";
import { isWrite, trimBlanks } from "../seams.ts";

const bare = (tag: string) => tag.replaceAll('"', "");
const members = (sent: string) => sent.split(",").map(trimBlanks);
const METHODS = ["PUT", "PATCH", "DELETE"] as const;

/** The rule of each method for a stale tag, no tag, and the tag of a refusal. */
const RULES = {
  PUT: { stale: "IFM-03", missing: "IFM-04", tagOf412: "IFM-07" },
  PATCH: { stale: "IFM-31", missing: "IFM-32", tagOf412: "IFM-34" },
  DELETE: { stale: "IFM-41", missing: "IFM-42", tagOf412: "IFM-44" },
} as const;

/** Every spelling that a comparison may wrongly take for the current tag. */
const TAKEN: [
  id: string,
  rule: string,
  does: string,
  cause: RegExp,
  wrongly: Parameters<typeof accepting>[0],
][] = [
  [
    "takes-star",
    "IFM-12",
    "honours If-Match: * as RFC 9110 does, where 4.2 wants equality",
    /\*/,
    (sent) => sent === "*",
  ],
  [
    "takes-list",
    "IFM-13",
    "finds the tag anywhere in a list",
    /list/i,
    (sent, { tag }) => sent.includes(",") && members(sent).includes(tag),
  ],
  [
    "takes-first-of-list",
    "IFM-13",
    "compares the first member of a list",
    /list/i,
    (sent, { tag }) => sent.includes(",") && members(sent)[0] === tag,
  ],
  [
    "takes-last-of-list",
    "IFM-13",
    "compares the last member of a list",
    /list/i,
    (sent, { tag }) => sent.includes(",") && members(sent).at(-1) === tag,
  ],
  [
    "takes-weak",
    "IFM-09",
    "compares weakly: W/ before the tag is ignored",
    /weak|W\//i,
    (sent, { tag }) => sent === `W/${tag}`,
  ],
  ["takes-unquoted", "IFM-10", "compares without quotes", /quot/i, (sent, { tag }) => sent === bare(tag)],
  [
    "takes-half-quoted",
    "IFM-10",
    "cuts a quote from either end, where there is one",
    /quot/i,
    (sent, { tag }) => sent !== bare(tag) && bare(sent) === bare(tag) && !sent.startsWith("W/"),
  ],
  [
    "takes-single-quoted",
    "IFM-10",
    "takes single quotes for double ones",
    /quot/i,
    (sent, { tag }) => sent === `'${bare(tag)}'`,
  ],
  [
    "takes-any-case",
    "IFM-11",
    "compares without regard to case",
    /case/i,
    (sent, { tag }) => sent.toLowerCase() === tag.toLowerCase(),
  ],
  [
    "takes-prefix-of-header",
    "IFM-15",
    "asks whether the header begins with the tag",
    /suffix|after|longer|trailing|append/i,
    (sent, { tag }) => sent.startsWith(tag) && !sent.includes(","),
  ],
  [
    "takes-longer-token",
    "IFM-15",
    "asks whether the sent token begins with the current one",
    /suffix|longer|append/i,
    (sent, { tag }) => /^"[^"]*"$/.test(sent) && sent.startsWith(tag.slice(0, -1)),
  ],
  [
    "takes-gzip-suffix",
    "IFM-15",
    "tolerates -gzip within the quotes, as Apache writes it",
    /gzip|suffix/i,
    (sent, { tag }) => sent === tag.replace(/"$/, '-gzip"'),
  ],
  [
    "takes-shorter-token",
    "IFM-15",
    "asks whether the current token begins with the sent one",
    /short|prefix|truncat|cut/i,
    (sent, { tag }) => /^"[^"]{2,}"$/.test(sent) && tag.startsWith(sent.slice(0, -1)),
  ],
  [
    "compares-first-8-characters",
    "IFM-15",
    "keeps eight characters of a token in its column",
    /last|suffix|character|longer|stale|former/i,
    (sent, { tag }) => sent.slice(0, 9) === tag.slice(0, 9),
  ],
  [
    "takes-inner-blanks",
    "IFM-15",
    "trims blanks inside the quotes too",
    /blank|space/i,
    (sent, { tag }) => sent.includes(" ") && sent.replaceAll(" ", "") === tag,
  ],
  [
    "takes-percent-encoded",
    "IFM-16",
    "percent-decodes the header",
    /encod|%/i,
    (sent, { tag }) => sent !== tag && decodeURIComponentSafely(sent) === tag,
  ],
];

function decodeURIComponentSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const takesWrongly = TAKEN.map(
  ([id, rule, does, cause, wrongly]): Fault => ({
    id,
    rule,
    cause,
    does,
    plant: accepting(wrongly),
  }),
);

const perMethod = METHODS.flatMap((method): Fault[] => [
  {
    id: `${method.toLowerCase()}-ignores-if-match`,
    rule: RULES[method].stale,
    cause: new RegExp(method),
    does: `applies a stale ${method}: If-Match must be there, but is not compared`,
    plant: accepting((_sent, _customer, request) => request.method === method),
  },
  {
    id: `${method.toLowerCase()}-without-if-match-applied`,
    rule: RULES[method].missing,
    cause: new RegExp(method),
    does: `applies a ${method} without If-Match`,
    plant: requesting(
      (request, service) =>
        request.method === method &&
        headerLines(request, "if-match").length === 0 &&
        customerOf(request, service) !== undefined,
      (request, service) => withIfMatch(request, customerOf(request, service)?.tag),
    ),
  },
  {
    id: `${method.toLowerCase()}-412-without-etag`,
    rule: RULES[method].tagOf412,
    cause: /no ETag/,
    does: `answers a stale ${method} with 412 but without the current tag`,
    plant: replying(
      (reply, request) => request.method === method && reply.status === 412,
      (reply) => setHeader(reply, "ETag", undefined),
    ),
  },
  {
    id: `${method.toLowerCase()}-412-but-applied`,
    rule: RULES[method].stale,
    cause: /changed|applied/i,
    does: `answers a stale ${method} with 412 and applies it all the same`,
    plant: deciding("commit", (_sound, ran) => async ({ request, bodyRead, decide, apply }) => {
      await bodyRead();
      const refusal = decide();
      if (refusal === undefined) return apply();
      if (request.method === method && refusal.status === 412) {
        ran();
        apply();
      }
      return refusal;
    }),
  },
]);

const REFUSED: Fault[] = [
  {
    id: "put-428-but-applied",
    rule: "IFM-04",
    cause: /changed|applied/i,
    does: "answers a PUT without If-Match with 428 and applies it all the same",
    plant: deciding("commit", (_sound, ran) => async ({ request, bodyRead, decide, apply }) => {
      await bodyRead();
      const refusal = decide();
      if (refusal === undefined) return apply();
      if (request.method === "PUT" && refusal.status === 428) {
        ran();
        apply();
      }
      return refusal;
    }),
  },
  {
    id: "412-echoes-sent-tag",
    rule: "IFM-07",
    cause: /sent|stale|current/i,
    does: "puts the tag that was sent, not the current one, on 412",
    plant: replying(
      (reply, request) => isWrite(request) && reply.status === 412,
      (reply, request) => setHeader(reply, "ETag", trimBlanks(headerLines(request, "if-match")[0] ?? '""')),
    ),
  },
  {
    id: "412-weak-etag",
    rule: "IFM-07",
    cause: /weak|current/i,
    does: "weakens the tag on 412",
    plant: replying(
      (reply, request) => isWrite(request) && reply.status === 412,
      (reply, request, service) => setHeader(reply, "ETag", `W/${customerOf(request, service)?.tag}`),
    ),
  },
  {
    id: "stale-answered-204",
    rule: "IFM-03",
    cause: /204/,
    does: "answers a stale PUT with 204 and drops it silently",
    plant: replying(
      (reply, request) => request.method === "PUT" && reply.status === 412,
      (reply) => ({ status: 204, headers: reply.headers.filter(([name]) => !/^content/i.test(name)) }),
    ),
  },
  ...([409, 400, 403, 500] as const).map(
    (status): Fault => ({
      id: `stale-answered-${status}`,
      rule: "IFM-03",
      cause: new RegExp(`${status}`),
      does: `answers a stale write with ${status}`,
      plant: replying(
        (reply, request) => isWrite(request) && reply.status === 412,
        (reply) => ({ ...reply, status }),
      ),
    }),
  ),
  ...([400, 403, 412] as const).map(
    (status): Fault => ({
      id: `missing-answered-${status}`,
      rule: "IFM-04",
      cause: new RegExp(`${status}`),
      does: `answers a write without If-Match with ${status}`,
      plant: replying(
        (reply, request) => reply.status === 428 && headerLines(request, "if-match").length === 0,
        (reply) => ({ ...reply, status }),
      ),
    }),
  ),
  {
    id: "empty-if-match-applied",
    rule: "IFM-05",
    cause: /empty/i,
    does: "takes an empty If-Match for consent: if (header === undefined) refuse",
    plant: requesting(
      (request, service) =>
        headerLines(request, "if-match")[0] === "" && customerOf(request, service) !== undefined,
      (request, service) => withIfMatch(request, customerOf(request, service)?.tag),
    ),
  },
  {
    id: "blank-if-match-applied",
    rule: "IFM-06",
    cause: /blank/i,
    does: "takes an If-Match of blanks for consent",
    plant: requesting(
      (request, service) =>
        /^[ \t]+$/.test(headerLines(request, "if-match")[0] ?? "") &&
        customerOf(request, service) !== undefined,
      (request, service) => withIfMatch(request, customerOf(request, service)?.tag),
    ),
  },
  {
    id: "blank-answered-412",
    rule: "IFM-06",
    cause: /412/,
    does: "compares a blank If-Match instead of missing it",
    plant: deciding("isMissing", (_sound, ran) => (sent) => {
      if (sent === "") ran();
      return sent === undefined;
    }),
  },
  {
    id: "tabs-are-not-blank",
    rule: "IFM-06",
    cause: /tab/i,
    does: "cuts spaces but not tabs, so that an If-Match of tabs counts as present",
    plant: deciding("ifMatch", (sound, ran) => (lines, request) => {
      if (!/\t/.test(lines.join(""))) return sound(lines, request);
      ran();
      return lines.map((line) => line.replace(/^ +| +$/g, "")).join(", ");
    }),
  },
  {
    id: "does-not-trim",
    rule: "IFM-08",
    cause: /blank|space|trim|pad/i,
    does: "compares the header with the blanks around it",
    plant: deciding("ifMatch", (sound, ran) => (lines, request) => {
      const value = sound(lines, request);
      if (lines.length !== 1 || value === "" || !/^ {2}|^ ?\t|[ \t]$/.test(lines[0] ?? "")) return value;
      ran();
      return lines[0];
    }),
  },
  {
    id: "takes-first-header-line",
    rule: "IFM-14",
    cause: /two|line/i,
    does: "compares the first of two If-Match lines",
    plant: deciding("ifMatch", (sound, ran) => (lines, request) => {
      if (lines.length > 1) ran();
      return sound(lines.slice(0, 1), request);
    }),
  },
  {
    id: "takes-last-header-line",
    rule: "IFM-14",
    cause: /two|line/i,
    does: "compares the last of two If-Match lines",
    plant: deciding("ifMatch", (sound, ran) => (lines, request) => {
      if (lines.length > 1) ran();
      return sound(lines.slice(-1), request);
    }),
  },
  {
    id: "header-name-case-sensitive",
    rule: "IFM-01",
    cause: /case|name|428/i,
    does: "knows the header as If-Match alone, not as if-match",
    plant: requesting(
      (request) =>
        isWrite(request) &&
        request.headers.some(([name]) => name.toLowerCase() === "if-match" && name !== "If-Match"),
      (request) => ({
        ...request,
        headers: request.headers.filter(([name]) => name === "If-Match" || name.toLowerCase() !== "if-match"),
      }),
    ),
  },
  {
    id: "previous-tag-honoured",
    rule: "IFM-03",
    cause: /stale|former|previous|old/i,
    does: "honours the tag before the current one as well, as a grace",
    plant: accepting((sent, customer) => customer.formerTags.at(-1) === sent),
  },
  {
    id: "old-tags-honoured",
    rule: "IFM-18",
    cause: /stale|former|previous|old/i,
    does: "refuses the previous tag but honours older ones: only the last is kept for comparison",
    plant: accepting((sent, customer) => customer.formerTags.slice(0, -1).includes(sent)),
  },
  {
    id: "other-customers-tag-honoured",
    rule: "IFM-19",
    cause: /other|another/i,
    does: "looks the tag up in the whole table and not in the customer's row",
    plant: accepting((sent, customer, _request, service) =>
      [...service.customers.values()].some((each) => each.id !== customer.id && each.tag === sent),
    ),
  },
  {
    id: "stale-disjoint-patch-merged",
    rule: "IFM-31",
    cause: /PATCH/,
    does: "merges a stale PATCH when the fields it changes were not changed since",
    plant: (ran) => () => {
      const lastMethod = new Map<string, string>();
      return {
        isCurrent(sent, customer, request) {
          if (sent === customer.tag) {
            lastMethod.set(customer.id, request.method);
            return true;
          }
          const merged = request.method === "PATCH" && customer.formerTags.includes(sent);
          if (merged) ran();
          return merged;
        },
      };
    },
  },
  {
    id: "stale-with-current-values-accepted",
    rule: "IFM-03",
    cause: /stale/i,
    does: "answers a stale PUT with 204 when it would change nothing",
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        const customer = customerOf(request, service);
        if (request.method !== "PUT" || reply.status !== 412 || customer === undefined) return reply;
        const body = JSON.parse((await request.body()).toString("utf8")) as Record<string, unknown>;
        const { name, email } = service.deployment.members;
        if (body[name] !== customer.name || body[email] !== customer.email) return reply;
        ran();
        return { status: 204, headers: [["ETag", customer.tag]] };
      },
    }),
  },
  {
    id: "applied-then-500",
    rule: "IFM-01",
    cause: /500/,
    does: "applies a PUT, then fails on the way out",
    plant: replying(
      (reply, request) => request.method === "PUT" && reply.status < 300,
      () => ({ status: 500, headers: [], body: "" }),
    ),
  },
  {
    id: "put-changes-nothing",
    rule: "IFM-01",
    cause: /not applied|unchanged|kept/i,
    does: "answers a PUT with 204 and a new tag but stores nothing",
    plant: deciding("store", (sound, ran) => (customer, change, request) => {
      if (request.method === "PUT") ran();
      else sound(customer, change, request);
    }),
  },
  {
    id: "put-loses-email",
    rule: "IFM-01",
    cause: /email/i,
    does: "stores the name of a PUT and forgets the email",
    plant: deciding("store", (sound, ran) => (customer, change, request) => {
      if (request.method !== "PUT") return sound(customer, change, request);
      ran();
      if (change.name !== undefined) sound(customer, { name: change.name }, request);
    }),
  },
  {
    id: "patch-replaces",
    rule: "IFM-30",
    cause: /email|name/i,
    does: "takes a PATCH for a PUT: members that are not in it are emptied",
    plant: deciding("store", (sound, ran) => (customer, change, request) => {
      if (request.method !== "PATCH") return sound(customer, change, request);
      ran();
      sound(customer, { name: "", email: "", ...change }, request);
    }),
  },
  {
    id: "delete-does-nothing",
    rule: "IFM-40",
    cause: /DELETE/,
    does: "answers DELETE with 204 and leaves customer and tag as they are",
    plant: deciding("commit", (sound, ran) => async (attempt) => {
      if (attempt.request.method !== "DELETE") return await sound(attempt);
      await attempt.bodyRead();
      const refusal = attempt.decide();
      if (refusal === undefined) ran();
      return refusal ?? { status: 204, headers: [] };
    }),
  },
  {
    id: "put-changes-id",
    rule: "FLD-15",
    cause: /\bId\b/i,
    does: "binds the whole body to the row: an Id in a PUT changes the id",
    plant: (ran) => (service) => ({
      writable: (request) => (request.method === "PATCH" ? ["name", "email", "status"] : ["name", "email"]),
      async around(request, next) {
        const reply = await next(request);
        const customer = customerOf(request, service);
        if (
          !isCustomer(request) ||
          !/PUT|PATCH/.test(request.method) ||
          reply.status >= 300 ||
          customer === undefined
        )
          return reply;
        const body = JSON.parse((await request.body()).toString("utf8")) as Record<string, unknown>;
        const id = body[service.deployment.members.id];
        if (typeof id !== "string" || id === customer.id) return reply;
        ran();
        customer.id = id; // the key of the map stays: the row is found by its address and shows another id
        return reply;
      },
    }),
  },
];

export const IF_MATCH_FAULTS: Fault[] = [...takesWrongly, ...perMethod, ...REFUSED];
