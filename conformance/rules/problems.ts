/** PRB: errors. */

import { headerValue } from "../http/http-reply.ts";
import { CouldNotRun, NotApplicable } from "../http/outcome-signal.ts";
import type { Seen } from "../http/wire.ts";
import { getOf, type Written } from "../probe/answered.ts";
import type { Attempt } from "../probe/attempt.ts";
import { showsCustomer } from "../probe/callers/existence.ts";
import { ifMatch } from "../probe/requests/if-match-forms.ts";
import { pathEnd } from "../probe/requests/other-paths.ts";
import { type Rule, rule } from "../probe/rule.ts";
import { bareGuid, plain } from "../target/names.ts";

/** Statuses of a service that failed; 501 and 503 are answers on purpose. */
const FAILED = [500, 502, 504];
const SHOWN_MAX = 5;

const isProblem = (seen: Seen) =>
  /^application\/problem\+json\b/i.test(headerValue(seen.headers, "content-type") ?? "");

/** A trace of the program: its frames, or the message of its database. Words such as "select" and times are none. */
const TRACE =
  /^\s*at [\w$.<>[\] ]+ ?\(.*:\d+|^\s*at [\w$.]+\([\w.]*\.(?:java|kt|scala|cs)|^\s*at .+\) in .+:line \d+|Traceback \(most recent call last\)|^\s*File ".*", line \d+|SQLSTATE\[?\w{5}|goroutine \d+ \[|ORA-\d{5}/m;

async function stale(t: Attempt, kind: "stale" | "missing", allowed: string): Promise<Written> {
  const { former, ...now } = await t.control("PUT");
  return await t.write("PUT", {
    before: now,
    ifMatch: kind === "stale" ? ifMatch(former) : [],
    what: kind === "stale" ? "a stale tag" : "no If-Match",
    allowed,
  });
}

/** What tells the error of a document from others, member by member. */
function codesOf(object: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(object)
    .filter(
      ([name, value]) =>
        (name === "type"
          ? value !== "about:blank"
          : /^(error)?(code|id|key)$|^errortype$/.test(plain(name))) &&
        (typeof value === "string" || typeof value === "number") &&
        value !== "",
    )
    .map(([name, value]) => `${name} ${JSON.stringify(value)}`)
    .sort();
}

/** ID is one that nobody has. */
const ID_PATTERNS = ["' OR '1'='1", "ID' OR 'a'='a' --", "%", "*", "ID|.*"];

/** A column that is too short, and a search by the beginning, take one id for another. */
async function alikeIsAnother(t: Attempt, control: Seen): Promise<void> {
  const { main, ground } = t.kit;
  for (const [place, at] of [
    ["first", 0],
    ["tenth", 9],
    ["last", main.id.length - 1],
  ] as const) {
    if (at >= main.id.length) continue;
    const other = main.id.charAt(at) === "1" ? "2" : "1";
    const to = ground.customerAt(main.id.slice(0, at) + other + main.id.slice(at + 1), false);
    const what = `GET ?fields=id of an id with another ${place} character`;
    const read = await t.read("?fields=id", "404, or a customer with that id", { to, what });
    read.control({ differs: "the id of the customer", seen: control });
    // Ids that are given in a row may have a neighbour there, who has an id of its own.
    const shown = t.fieldsOf(read.seen).id;
    const same = shown !== undefined && bareGuid(String(shown)) === bareGuid(main.id);
    read.must("not-alike", !same, `${what} shows the customer ${main.id}`);
  }
}

export const problems: readonly Rule[] = [
  rule("PRB-01", "GET of a missing customer is 404", {
    spec: ["4.1 404", "7 404"],
    reading:
      "With and without `fields`. An id that differs in one character from that of a customer is not that customer's.",
    hurts: "Clients cannot tell an empty customer from none, or read another one.",
    async check(t) {
      const control = await t.get(t.kit.main, { purpose: "control request: the customer exists" });
      if (control.status !== 200)
        throw new CouldNotRun(`GET of an existing customer was answered ${control.status}`, ["ETG-01"]);
      for (const query of ["", "?fields=id,name"]) {
        const what = `${getOf(query)} of a missing customer`;
        const read = await t.read(query, "404", { to: t.kit.ground.missing(), what });
        read.control({ differs: "the customer exists", seen: control });
        read.mustAnswer("status", 404);
      }
      await alikeIsAnother(t, control);
    },
  }),
  rule("PRB-06", "No pattern in place of an id shows a customer", {
    spec: ["1.1", "4.1 404"],
    reading:
      "Whether SQL, a wildcard or an expression is malformed or names nobody is open: it is no customer's id.",
    hurts: "Anyone who knows no id at all reads customers all the same.",
    needs: ["hostile"],
    after: ["PRB-01"],
    async check(t) {
      const missing = t.kit.ground.missing();
      const control = await t.get(missing, { purpose: "control request: an id that nobody has" });
      if (showsCustomer(control))
        throw new CouldNotRun("a read of an id that nobody has shows a customer", ["PRB-01"]);
      for (const text of ID_PATTERNS) {
        const to = t.kit.ground.customerAt(text.replace("ID", missing.id), false);
        const what = `GET ${pathEnd(to)}`;
        const read = await t.read("", "no customer", { to, what, answers: [403] });
        read.control({ differs: "an id that nobody has", seen: control, refused: true });
        read.must("no-customer", !showsCustomer(read.seen), `${what} shows a customer`);
      }
    },
  }),
  rule("PRB-02", "Refusals are the same each time", {
    spec: ["7 rule 1"],
    hurts: "Clients pass their tests and fail in production.",
    needs: ["write"],
    after: ["IFM-03", "IFM-04"],
    async check(t) {
      const { former, tag } = await t.control("PUT");
      if (former === tag)
        throw new CouldNotRun("the tag does not change, so there is no stale one", ["ETG-08"]);
      for (const [what, lines] of [
        ["with a stale tag", ifMatch(former)],
        ["without If-Match", []],
      ] as const) {
        let first: number | undefined;
        for (let time = 0; time < (t.quick ? 4 : 10); time += 1) {
          const allowed = first === undefined ? "a refusal" : `${first}, as before`;
          const put = await t.writeOnly("PUT", t.kit.main, { what, allowed, ifMatch: lines });
          if (first !== undefined) put.mustAnswer("same", first);
          first ??= put.seen.status;
          if (put.accepted) break;
        }
      }
      t.mustHaveLooked("both bad writes are accepted", "IFM-03", "IFM-04");
    },
  }),
  rule("PRB-03", "A problem document says what its status says", {
    spec: ["4.2 412", "7 412"],
    reading:
      "Where problem details come they are a JSON object of RFC 7807 whose status is that of the response. Of 428 the specification shows no document, hence a warning.",
    hurts: "Clients act on a document that contradicts the status line.",
    needs: ["write"],
    after: ["IFM-03", "IFM-04"],
    async check(t) {
      for (const kind of ["stale", "missing"] as const) {
        const put = await stale(t, kind, "if a problem document comes, it says what the status says");
        const { seen } = put;
        if (!isProblem(seen)) continue;
        const { object } = seen;
        const weight = kind === "stale" ? {} : ({ level: "SHOULD" } as const);
        const what = kind === "stale" ? "PUT with a stale tag" : "PUT without If-Match";
        put.show(seen, { came: `${seen.status} ${seen.text.slice(0, 160)}` });
        const broken = `${what}: application/problem+json, and the body is no JSON object`;
        put.must("object", object !== undefined, broken, weight);
        const status = object?.["status"];
        const other = `${what}: the document says status ${JSON.stringify(status)}, the response ${seen.status}`;
        put.must("status", status === undefined || status === seen.status, other, weight);
        for (const member of ["type", "title", "detail", "instance"]) {
          const value = object?.[member];
          const found = `${what}: ${member} is ${JSON.stringify(value)}, no string`;
          put.should("strings", value === undefined || typeof value === "string", found);
        }
      }
      if (t.assertions.size === 0)
        throw new NotApplicable("no refusal carries a problem document; they are optional");
    },
  }),
  rule("PRB-04", "A problem document of 412 names a clear error code", {
    spec: ["7 412"],
    reading:
      "If there is one, it tells this error from others: by a type, a code or the like, and never by those of a 428. It shows no stack trace.",
    hurts: "Clients must parse prose.",
    needs: ["write"],
    after: ["IFM-03", "IFM-04"],
    async check(t) {
      const put = await stale(t, "stale", "a problem document that names its error");
      const { seen } = put;
      if (seen.status !== 412) throw new CouldNotRun("a stale PUT is not answered 412", ["IFM-03"]);
      const { object, text } = seen;
      if (!isProblem(seen) || object === undefined)
        throw new NotApplicable("a 412 carries no problem document; it is optional");
      put.show(seen, { came: `${seen.status} ${text.slice(0, 160)}` });
      const strings = Object.values(object).flatMap((value) => (typeof value === "string" ? [value] : []));
      const trace = strings.find((value) => TRACE.test(value));
      const shown = `the document carries a stack trace: ${trace?.slice(0, 160)}`;
      put.should("no-internals", trace === undefined, shown);
      const codes = codesOf(object);
      const none = `neither a type nor a code tells this error from others: ${text.slice(0, 160)}`;
      put.should("code", codes.length > 0, none);
      const other = (await stale(t, "missing", "another document than that of a 412")).seen;
      if (codes.length === 0 || other.status !== 428 || !isProblem(other)) return;
      const same = Bun.deepEquals(codes, codesOf(other.object ?? {}));
      const found = `412 and 428 name the same error, ${codes.join(", ")}`;
      const alike = object["title"] === other.object?.["title"];
      put.must("own-code", !same, found, alike ? {} : { level: "SHOULD" });
    },
  }),
  rule("PRB-05", "No probe makes the service fail", {
    level: "SHOULD",
    spec: ["7 rule 1"],
    reading:
      "Whatever this run sent, the service answered it without 500, 502 or 504, or did so when asked again.",
    hurts: "A client's fault becomes the operator's alarm.",
    async check(t) {
      // Requests of other rules count as well: this one is run last.
      const { ledger } = t.kit.wire;
      const { passing, failed } = t.kit.weather;
      const answered = ledger.filter(({ status }) => status !== null);
      if (answered.length < 5) throw new CouldNotRun("too few requests were answered in this run");
      const again = failed.filter(({ n, reply }) => FAILED.includes(reply?.status ?? 0) && !passing.has(n));
      const proof = t.proof(`all ${answered.length} requests of this run`, "none of 500, 502, 504");
      const lines = again.slice(0, SHOWN_MAX).map(({ n, request, reply }) => {
        const { rule, path } = ledger[n - 1] ?? { rule: "", path: "" };
        return `${n} (${rule}) ${request.method} ${path}: ${reply?.status}`;
      });
      const [first] = again;
      if (first !== undefined) {
        t.keep(first);
        proof.evidence.sent = first.n;
      }
      proof.evidence.came = lines.join("; ");
      const found = `${again.length} of ${answered.length} requests made the service fail: ${lines.join("; ")}`;
      proof.must("no-failure", again.length === 0, found);
    },
  }),
];
