import { headerValue } from "../../http/http-reply.ts";
import type { Seen } from "../../http/wire.ts";
import type { Attempt } from "../../probe/attempt.ts";
import type { Check } from "../../probe/check.ts";
import { describe, note } from "../../probe/evidence.ts";
import { CouldNotRun, NotApplicable } from "../../probe/outcome-signal.ts";
import { accepted, type WriteOptions } from "../../probe/trial.ts";
import { plain } from "../../target/names.ts";
import type { prb as rules } from "../problems.ts";

/** Statuses of a service that failed; 501 and 503 are answers on purpose. */
const FAILED = [500, 502, 504];
const SHOWN_MAX = 5;

const isProblem = (seen: Seen) =>
  /^application\/problem\+json\b/i.test(headerValue(seen.headers, "content-type") ?? "");

async function refusalsOf(t: Attempt): Promise<{ what: string; seen: Seen }[]> {
  const { former } = await t.twin("PUT", t.kit.main);
  const put = async (what: string, options: WriteOptions) => {
    const evidence = t.probe(what, "if a problem document comes, it says what the status says");
    const seen = await t.rawWrite("PUT", t.kit.main, { ...options, purpose: "probe" });
    note(evidence, seen, { came: `${describe(seen)} ${seen.text.slice(0, 160)}` });
    return { what, seen, evidence };
  };
  return [await put("PUT with a stale tag", { ifMatch: former }), await put("PUT without If-Match", {})];
}

export const prb = {
  "PRB-01": async (t) => {
    const twin = await t.get(t.kit.main, { purpose: "twin: the customer exists" });
    if (twin.status !== 200)
      throw new CouldNotRun(`GET of an existing customer was answered ${twin.status}; see ETG-01`);
    for (const query of ["", "?fields=id,name"]) {
      const evidence = t.probe(`GET ${query} of a missing customer`, "404");
      const seen = await t.get(t.kit.ground.missing(), { query, purpose: "probe" });
      note(evidence, seen, {
        twin: { differs: "the customer exists", n: twin.exchange.n, status: twin.status, ok: true },
      });
      t.check(
        "status",
        seen.status === 404,
        `GET ${query} of a missing customer was answered ${seen.status}, not 404`,
      );
    }
  },
  "PRB-02": async (t) => {
    const { former, tag } = await t.twin("PUT", t.kit.main);
    if (former === tag)
      throw new CouldNotRun("the tag does not change, so there is no stale one; see ETG-08");
    for (const [what, options] of [
      ["PUT with a stale tag", { ifMatch: former }],
      ["PUT without If-Match", {}],
    ] as const) {
      let first: number | undefined;
      for (let time = 0; time < (t.quick ? 4 : 10); time += 1) {
        const evidence = t.probe(what, first === undefined ? "a refusal" : `${first}, as before`);
        const seen = await t.rawWrite("PUT", t.kit.main, { ...options, purpose: "probe" });
        note(evidence, seen);
        if (first !== undefined)
          t.check("same", seen.status === first, `${what} was answered ${first} and then ${seen.status}`);
        first ??= seen.status;
        if (accepted(seen.status)) break;
      }
    }
    if (t.assertions.size === 0) throw new CouldNotRun("both bad writes are accepted; see IFM-03 and IFM-04");
  },
  "PRB-03": async (t) => {
    for (const { what, seen } of await refusalsOf(t)) {
      if (!isProblem(seen)) continue;
      t.check(
        "object",
        seen.object !== undefined,
        `${what}: application/problem+json, and the body is no JSON object`,
      );
      const status = seen.object?.["status"];
      t.check(
        "status",
        status === undefined || status === seen.status,
        `${what}: the document says status ${JSON.stringify(status)}, the response ${seen.status}`,
      );
      for (const member of ["type", "title", "detail", "instance"]) {
        const value = seen.object?.[member];
        t.check(
          "strings",
          value === undefined || typeof value === "string",
          `${what}: ${member} is ${JSON.stringify(value)}, no string`,
        );
      }
    }
    if (t.assertions.size === 0)
      throw new NotApplicable("no refusal carries a problem document; they are optional");
  },
  "PRB-04": async (t) => {
    const stale = (await refusalsOf(t)).find(({ seen }) => seen.status === 412);
    if (stale === undefined) throw new CouldNotRun("a stale PUT is not answered 412; see IFM-03");
    if (!isProblem(stale.seen) || stale.seen.object === undefined)
      throw new NotApplicable("a 412 carries no problem document; it is optional");
    const { object, text } = stale.seen;
    t.check(
      "no-internals",
      !/\bat \S+ ?\(?\S+:\d+(:\d+)?\)?|Traceback \(most recent|\bSQLSTATE\b|\bSELECT\b.+\bFROM\b|\.(java|cs|py|go|ts|js|rb|php):(line )?\d+|stack ?trace/i.test(
        text,
      ),
      `the document carries a stack trace or the like: ${text.slice(0, 160)}`,
    );
    const type = object["type"];
    const typed = typeof type === "string" && type !== "" && type !== "about:blank";
    const coded = Object.entries(object).some(
      ([name, value]) =>
        /^(error)?(code|id|key|type)$/.test(plain(name)) &&
        plain(name) !== "type" &&
        (typeof value === "string" || typeof value === "number") &&
        value !== "",
    );
    t.check(
      "code",
      typed || coded,
      `neither a type nor a code tells this error from others: ${stale.seen.text.slice(0, 160)}`,
    );
  },
  "PRB-05": async (t) => {
    // Requests of other rules count as well: this one is run last.
    const failed = t.kit.wire.ledger.filter(({ status }) => status !== null && FAILED.includes(status));
    const ran = t.kit.wire.ledger.filter(({ status }) => status !== null).length;
    if (ran < 5) throw new CouldNotRun("too few requests were answered in this run");
    const evidence = t.probe(`all ${ran} requests of this run`, "none of 500, 502, 504");
    evidence.came = failed
      .slice(0, SHOWN_MAX)
      .map(({ n, rule, method, path, status }) => `${n} (${rule}) ${method} ${path}: ${status}`)
      .join("; ");
    t.check(
      "no-failure",
      failed.length === 0,
      `${failed.length} of ${ran} requests made the service fail: ${evidence.came}`,
    );
  },
} satisfies Record<(typeof rules)[number]["id"], Check>;
