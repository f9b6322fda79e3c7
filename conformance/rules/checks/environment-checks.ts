import { headerValue, headerValues } from "../../http/http-reply.ts";
import type { Seen } from "../../http/wire.ts";
import type { Attempt } from "../../probe/attempt.ts";
import type { Check } from "../../probe/check.ts";
import { describe, note } from "../../probe/evidence.ts";
import { CouldNotRun, NotApplicable } from "../../probe/outcome-signal.ts";
import { accepted, type Snapshot, sameFields, shows } from "../../probe/trial.ts";
import type { Values } from "../../probe/values.ts";
import { registryFields } from "../../target/names.ts";
import type { env as rules } from "../environment.ts";

const CODINGS = ["gzip", "br", "deflate", "zstd", "gzip, deflate, br"];
const accepting = (codings: string): [string, string][] => [["Accept-Encoding", codings]];

export const env = {
  "ENV-01": async (t) => {
    t.needsStableTag();
    const bare = await t.state(t.kit.main, "twin: no coding accepted");
    for (const codings of CODINGS) {
      const evidence = t.probe(`GET with Accept-Encoding: ${codings}`, `ETag ${bare.tag}`);
      const seen = await t.get(t.kit.main, {
        query: t.kit.deployment.stateQuery,
        headers: accepting(codings),
        purpose: "probe",
      });
      note(evidence, seen, {
        twin: { differs: "no Accept-Encoding", n: bare.seen.exchange.n, status: 200, ok: true },
      });
      if (seen.status !== 200) continue;
      if (t.check("present", seen.tag !== undefined, `with Accept-Encoding: ${codings} no ETag comes`))
        t.check(
          "same",
          seen.tag === bare.tag,
          `with Accept-Encoding: ${codings} the ETag is ${altered(seen.tag, bare.tag)}, without it ${bare.tag}`,
        );
    }
    if (t.assertions.size === 0) throw new CouldNotRun("no read with Accept-Encoding was answered 200");
  },
  "ENV-02": async (t) => {
    await t.twin("PUT", t.kit.main);
    const read = await t.get(t.kit.main, {
      headers: accepting("gzip"),
      purpose: "read as an ordinary client",
    });
    if (read.tag === undefined) throw new CouldNotRun("a read that accepts gzip carries no ETag; see ENV-01");
    const evidence = t.probe("PUT with the tag of a read that accepts gzip", "accepted");
    const seen = await t.rawWrite("PUT", t.kit.main, {
      ifMatch: read.tag,
      headers: accepting("gzip"),
      purpose: "probe",
    });
    note(evidence, seen);
    t.check(
      "accepted",
      accepted(seen.status),
      `the tag ${read.tag}, as it came with gzip accepted, was answered ${seen.status}`,
    );
    for (const method of ["PUT", "PATCH"] as const) {
      if (method === "PATCH" && !(await t.patchOffered())) continue;
      const bare = await t.twin(method, t.kit.main);
      // An answer without the new tag is ETG-07's and ETG-11's to blame.
      if (bare.twin.tag !== bare.tag) continue;
      for (const codings of t.quick ? CODINGS.slice(0, 1) : CODINGS) {
        const before = await t.state(t.kit.main, "read before");
        const probe = t.probe(
          `${method} with Accept-Encoding: ${codings}`,
          "the answer carries the new ETag",
        );
        const write = await t.rawWrite(method, t.kit.main, {
          ifMatch: before.tag,
          headers: accepting(codings),
          purpose: "probe",
        });
        const after = await t.state(t.kit.main);
        note(probe, write, {
          before: before.seen,
          after: after.seen,
          twin: {
            differs: "no Accept-Encoding",
            n: bare.twin.exchange.n,
            status: bare.twin.status,
            ok: true,
          },
        });
        if (!accepted(write.status)) continue;
        t.check(
          "answered-tag",
          write.tag === after.tag,
          `with Accept-Encoding: ${codings} the answer ${write.status} to ${method} carries ${altered(write.tag, after.tag)}; the next read shows ${after.tag}`,
        );
      }
    }
  },
  "ENV-03": async (t) => {
    t.needsStableTag();
    const { former, tag } = await t.twin("PUT", t.kit.main);
    const bare = await t.rawWrite("PUT", t.kit.main, {
      ifMatch: former,
      purpose: "twin: no coding accepted",
    });
    if (bare.status !== 412 || bare.tag !== tag)
      throw new CouldNotRun(
        `a stale PUT is answered ${describe(bare)} even without compression; see IFM-03 and IFM-07`,
      );
    for (const codings of CODINGS) {
      const evidence = t.probe(`stale PUT with Accept-Encoding: ${codings}`, `412 with ETag ${tag}`);
      const seen = await t.rawWrite("PUT", t.kit.main, {
        ifMatch: former,
        headers: accepting(codings),
        purpose: "probe",
      });
      note(evidence, seen, {
        twin: { differs: "no Accept-Encoding", n: bare.exchange.n, status: bare.status, ok: true },
      });
      // Another status is the IFM rules' matter.
      if (seen.status !== 412) continue;
      t.check(
        "same",
        seen.tag === tag,
        `with Accept-Encoding: ${codings} the 412 carries ${altered(seen.tag, tag)}; the current tag is ${tag}`,
      );
    }
  },
  "ENV-04": async (t) => {
    t.needsStableTag();
    const queries = [...new Set(["", "?fields=name", "?fields=id,name,email", t.kit.deployment.stateQuery])];
    const methods = [...Array<"PUT">(t.quick ? 1 : 3).fill("PUT"), "PATCH"] as const;
    for (const method of methods) {
      if (method === "PATCH" && !(await t.patchOffered())) continue;
      const before = await t.state(t.kit.main, "read before");
      // Whatever keeps copies gets a chance to keep these.
      for (const query of queries) await t.get(t.kit.main, { query, purpose: "fill caches" });
      const values = t.kit.values.next();
      const put = await writeFrom(t, method, before, values);
      // What PATCH refuses is IFM-30's to blame.
      if (method === "PATCH" && !accepted(put.status)) break;
      if (!accepted(put.status))
        throw new CouldNotRun(`PUT with the current tag was answered ${put.status}; see IFM-01`);
      const reads = await Promise.all(
        queries.flatMap((query) =>
          (["socket", "socket", "undici"] as const).map((via) =>
            t.get(t.kit.main, { query, via, purpose: "read after the write" }),
          ),
        ),
      );
      const end = await t.state(t.kit.main);
      // A PATCH that is applied nowhere is IFM-30's to blame.
      const patched = method === "PUT" || shows(end.fields.name, values.name);
      for (const seen of reads) {
        const { url } = seen.exchange.request;
        const evidence = t.probe(
          `GET ${new URL(url).search} right after the ${method}`,
          "the new tag and values",
        );
        note(evidence, seen, {
          came: `${describe(seen)} ${seen.text.slice(0, 120)}`,
          before: before.seen,
          after: seen,
        });
        if (seen.status !== 200) continue;
        t.check(
          "tag",
          seen.tag !== before.tag || put.tag === before.tag,
          `right after an accepted ${method} a read shows the tag before it, ${before.tag}`,
        );
        const { name } = registryFields(seen.object ?? {}, t.kit.deployment.names);
        t.check(
          "values",
          name === undefined || name !== before.fields.name || !patched,
          `right after an accepted ${method} a read shows the name before it, ${JSON.stringify(name)}`,
        );
      }
      if (method === "PUT" && sameFields(before, end))
        throw new CouldNotRun("an accepted PUT changed nothing; see IFM-01");
    }
  },
  "ENV-05": async (t) => {
    const credentials = t.kit.profile.main.map(({ name }) => name.toLowerCase());
    for (const query of ["", "?fields=name"]) {
      const evidence = t.probe(
        `GET ${query}, its Cache-Control and Vary`,
        "not fresh for shared caches, or Vary names the credentials",
      );
      const seen = await t.get(t.kit.main, { query, purpose: "probe" });
      const vary = headerValues(seen.headers, "vary")
        .join(",")
        .toLowerCase()
        .split(",")
        .map((name) => name.trim());
      evidence.came = `Cache-Control: ${headerValue(seen.headers, "cache-control") ?? "none"}; Vary: ${vary.join(", ") || "none"}`;
      evidence.sent = seen.exchange.n;
      if (seen.status !== 200)
        throw new NotApplicable(`GET ${query} was answered ${seen.status}; see ETG-01`);
      const keyed = vary.includes("*") || credentials.every((name) => vary.includes(name));
      t.check(
        "keyed",
        keyed || !sharedFreshness(seen, credentials.includes("authorization")),
        `${evidence.came}: a shared cache may hand this to other callers`,
      );
    }
  },
} satisfies Record<(typeof rules)[number]["id"], Check>;

function altered(tag: string | undefined, current: string): string {
  if (tag === undefined) return "no ETag";
  return /^W\//.test(tag) && !/^W\//.test(current) ? `${tag}, weak` : tag;
}

/**
 * An accepted write from the state that a read shows. Where a read shows an old tag, the 412 tells the tag of now:
 * that is what this rule is about.
 */
async function writeFrom(
  t: Attempt,
  method: "PUT" | "PATCH",
  before: Snapshot,
  values: Values,
): Promise<Seen> {
  const ask = { values: method === "PUT" ? values : { name: values.name }, purpose: "write" };
  const first = await t.rawWrite(method, t.kit.main, { ...ask, ifMatch: before.tag });
  if (first.status !== 412 || first.tag === undefined || first.tag === before.tag) return first;
  if (shows((await t.state(t.kit.main, "was it written all the same")).fields.name, values.name))
    throw new CouldNotRun(
      `${method} was answered 412 and applied all the same; see ${method === "PUT" ? "IFM-01" : "IFM-30"}`,
    );
  const evidence = t.probe(`a read, and a ${method} with its tag`, "the read shows the current tag");
  note(evidence, first, { before: before.seen });
  t.check("tag", false, `a read shows the old tag ${before.tag}, while the current one is ${first.tag}`);
  return await t.rawWrite(method, t.kit.main, { ...ask, ifMatch: first.tag });
}

/** Whether a shared cache may answer with it without asking again (RFC 9111 3, 3.5, 4.2.1). */
function sharedFreshness(seen: Seen, authorization: boolean): boolean {
  const directives = headerValues(seen.headers, "cache-control").join(",").toLowerCase();
  const seconds = (name: string) =>
    Number(new RegExp(`(?:^|[\\s,])${name}\\s*=\\s*"?(\\d+)`).exec(directives)?.[1] ?? Number.NaN);
  const has = (name: string) => new RegExp(`(?:^|[\\s,])${name}(?:$|[\\s,=])`).test(directives);
  const targeted = ["surrogate-control", "cdn-cache-control"].map(
    (name) => headerValue(seen.headers, name) ?? "",
  );
  if (targeted.some((value) => /max-age\s*=\s*[1-9]/i.test(value) && !/no-store|private/i.test(value)))
    return true;
  if (has("no-store") || has("private") || has("no-cache")) return false;
  const shared = seconds("s-maxage");
  if (!Number.isNaN(shared)) return shared > 0;
  const age = seconds("max-age");
  // `public` alone lets a cache guess how long it is fresh (RFC 9111 4.2.2).
  if (has("public")) return age !== 0;
  // With Authorization a shared cache needs to be told so; with any other header it does not know of credentials.
  return age > 0 && !authorization;
}
