/** ENV: what lies between the kit and the service. */

import type { Customer } from "../../fixtures/ground.ts";
import { headerValue, headerValues } from "../../http/http-reply.ts";
import { CouldNotRun, NotApplicable, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { accepted, isGone } from "../../http/status.ts";
import type { Seen } from "../../http/wire.ts";
import { getOf } from "../../probe/answered.ts";
import { type Attempt, BASE, type ReadOptions } from "../../probe/attempt.ts";
import { BY_MAKER, readableCustomer } from "../../probe/callers/own-customers.ts";
import { preparedFor } from "../../probe/prepared.ts";
import { describe } from "../../probe/proof.ts";
import { together } from "../../probe/races/together.ts";
import { NEEDS } from "../../probe/refusals/refused.ts";
import { headIsGet } from "../../probe/requests/by-head.ts";
import { ifMatch } from "../../probe/requests/if-match-forms.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { type Method, type Snapshot, sameFields, shows } from "../../probe/snapshot.ts";
import { saysNothing } from "../../probe/weather.ts";
import type { Values } from "../../target/values.ts";

const CODINGS = ["gzip", "br", "deflate", "zstd", "gzip, deflate, br"];
const accepting = (codings: string): [string, string][] => [["Accept-Encoding", codings]];

function altered(tag: string | undefined, current: string): string {
  if (tag === undefined) return "no ETag";
  return /^W\//.test(tag) && !/^W\//.test(current) ? `${tag}, weak` : tag;
}

/** The answer to an accepted write carries the new tag byte for byte, whatever coding is accepted. */
async function answeredTags(t: Attempt, method: "PUT" | "PATCH"): Promise<void> {
  const bare = await t.control(method);
  // An answer without the new tag is ETG-07's and ETG-11's to blame.
  if (bare.written.seen.tag !== bare.tag) return;
  for (const codings of t.leavesOut("codings other than gzip on writes") ? CODINGS.slice(0, 1) : CODINGS) {
    const write = await t.write(method, {
      headers: accepting(codings),
      what: `the current tag and Accept-Encoding: ${codings}`,
      allowed: "the answer carries the new ETag",
    });
    write.control({ differs: "no Accept-Encoding", seen: bare.written.seen });
    if (!write.accepted) continue;
    const { now, seen } = write;
    const found = `with Accept-Encoding: ${codings} the answer ${seen.status} to ${method} carries ${altered(seen.tag, now.tag)}; the next read shows ${now.tag}`;
    write.must("answered-tag", seen.tag === now.tag, found, OTHERS_MAY_CAUSE);
  }
}

/** A stale write carries the current tag byte for byte, whatever coding is accepted. */
async function tagsOf412(t: Attempt, method: Method): Promise<void> {
  const { customer, former, now } = await preparedFor(t, method);
  const stale = (headers: [string, string][]) =>
    t.writeOnly(method, customer, {
      what: `with a stale tag and ${headers.map((line) => line.join(": ")).join() || "no Accept-Encoding"}`,
      allowed: `412 with ETag ${now.tag}`,
      ifMatch: ifMatch(former),
      headers,
    });
  const bare = (await stale([])).seen;
  if (bare.status !== 412 || bare.tag !== now.tag)
    throw new CouldNotRun(
      `a stale ${method} is answered ${describe(bare)} even without compression`,
      [BASE[method].stale, "IFM-07"],
      OTHERS_MAY_CAUSE,
    );
  for (const codings of method === "PUT" ? CODINGS : ["gzip"]) {
    const probe = await stale(accepting(codings));
    const { seen } = probe;
    probe.control({ differs: "no Accept-Encoding", seen: bare });
    // Another status is the IFM rules' matter.
    if (seen.status !== 412) continue;
    const found = `with Accept-Encoding: ${codings} the 412 of ${method} carries ${altered(seen.tag, now.tag)}; the current tag is ${now.tag}`;
    probe.must("same", seen.tag === now.tag, found, OTHERS_MAY_CAUSE);
  }
}

/**
 * An accepted write from the state that a read shows. Where a read shows an old tag, the 412 tells the tag of now:
 * that is what this rule is about.
 */
async function writeFrom(
  t: Attempt,
  method: "PUT" | "PATCH",
  to: Customer,
  before: Snapshot,
  values: Values,
): Promise<Seen> {
  const ask = { values: method === "PUT" ? values : { name: values.name }, purpose: "write" };
  const send = (tag: string) => t.sendWrite(method, to, { ...ask, ifMatch: tag });
  const first = await send(before.tag);
  if (first.status !== 412 || first.tag === undefined || first.tag === before.tag) return first;
  if (shows((await t.state(to, "was it written all the same")).fields.name, values.name))
    throw new CouldNotRun(`${method} was answered 412 and applied all the same`, [BASE[method].current]);
  t.proof(`a read, and a ${method} with its tag`, "the read shows the current tag")
    .show(first, { before: before.seen })
    .must(
      "tag",
      false,
      `a read shows the old tag ${before.tag}, while the current one is ${first.tag}`,
      OTHERS_MAY_CAUSE,
    );
  return await send(first.tag);
}

/** 0.4 s. Copies usually lag for less. Where deleted customers stay readable, this wait brings nothing. */
const READS_UNTIL_GONE = 10;

/** What a DELETE leaves is open (4.3); a trace that is gone by itself a while later was none. */
async function freshlyGone(t: Attempt): Promise<void> {
  const customer = await t.kit.ground.make();
  await t.get(customer, { purpose: "fill caches" });
  const { seen, before, afterSeen } = await t.write("DELETE", { to: customer, purpose: "delete" });
  if (!accepted(seen.status) || seen.status === 202) return;
  const proof = t.proof("GET right after the DELETE", "what a later GET shows");
  let later = afterSeen;
  for (let read = 0; later.status === 200 && read < READS_UNTIL_GONE; read += 1) {
    await t.restForLag();
    later = await t.get(customer, { purpose: "read again" });
  }
  proof.show(afterSeen, { after: later });
  const found = `right after an accepted DELETE a read shows the customer, and a later one is ${later.status}`;
  // Under another tag it may be a state of its own on the way to the removal, which 4.3 leaves open.
  const level = afterSeen.tag === before.tag ? "MUST" : "SHOULD";
  const isShownLate = afterSeen.status === 200 && isGone(later.status);
  proof.must("gone", !isShownLate, found, { ...OTHERS_MAY_CAUSE, level });
}

/** @param to the main customer, or one of the other tenant's, whose write may be refused */
async function freshReads(t: Attempt, method: "PUT" | "PATCH", to = t.kit.main): Promise<void> {
  // Each field may come from somewhere else.
  const projections = ["id", "name", "email", "status", "id,name,email"].map((fields) => `?fields=${fields}`);
  const queries = [...new Set(["", ...projections, t.kit.deployment.stateQuery])];
  const before = await t.state(to, "read before");
  // Whatever keeps copies gets a chance to keep these.
  for (const query of queries) await t.get(to, { query, purpose: "fill caches" });
  // It asks by HEAD, so that a copy for HEAD is kept too.
  const head = to === t.kit.main && (await headIsGet(t));
  const values = t.kit.values.next();
  const former = t.kit.wire.onlooker.knownTags(new URL(to.url).pathname);
  const write = await writeFrom(t, method, to, before, values);
  // What PATCH refuses is IFM-30's to blame.
  if ((method === "PATCH" || to !== t.kit.main) && !accepted(write.status)) return;
  t.needAccepted("PUT", write);
  const purpose = "read after the write";
  const by = to === t.kit.main ? "" : ` ${BY_MAKER["other-tenant"]}`;
  const reads = await together([
    ...queries.flatMap((query) =>
      (["socket", "socket", "undici"] as const).map((via) => t.get(to, { query, via, purpose })),
    ),
    ...(head ? [t.get(to, { sentAs: "HEAD", purpose })] : []),
  ]);
  const end = await t.state(to);
  // A PATCH that is applied nowhere is IFM-30's to blame.
  const applied = method === "PUT" || shows(end.fields.name, values.name);
  // Where tags come back by themselves, one that is back proves nothing.
  const returns = former.has(write.tag ?? end.tag);
  for (const seen of reads) {
    const { url, method: read } = seen.exchange.request;
    const proof = t.proof(
      `${read} ${new URL(url).search} right after the ${method}${by}`,
      "the new tag and values",
    );
    proof.show(seen, {
      came: `${describe(seen)} ${seen.text.slice(0, 120)}`,
      before: before.seen,
      after: seen,
    });
    if (seen.status !== 200) continue;
    const stale = `right after an accepted ${method}${by} a read shows`;
    const newTag = seen.tag === undefined || !former.has(seen.tag) || returns;
    proof.must("tag", newTag, `${stale} a tag from before it, ${seen.tag}`, OTHERS_MAY_CAUSE);
    const { name } = t.fieldsOf(seen);
    const newValues = name === undefined || name !== before.fields.name || !applied;
    const found = `${stale} the name before it, ${JSON.stringify(name)}`;
    proof.must("values", newValues, found, OTHERS_MAY_CAUSE);
  }
  if (method === "PUT" && sameFields(before, end))
    throw new CouldNotRun("an accepted PUT changed nothing", ["IFM-01"]);
}

const FOR_CDN = ["CDN-Cache-Control", "Surrogate-Control"];

/** Whether a CDN is told, by a field of its own, to keep it whatever Cache-Control says (RFC 9213). */
function freshForCdn(seen: Seen): boolean {
  const values = FOR_CDN.map((name) => headerValue(seen.headers, name.toLowerCase()) ?? "");
  return values.some((value) => /max-age\s*=\s*[1-9]/i.test(value) && !/no-store|private/i.test(value));
}

/** Whether a shared cache may answer with it without asking again (RFC 9111 3, 3.5, 4.2.1). */
function sharedFreshness(seen: Seen, authorization: boolean): boolean {
  const directives = headerValues(seen.headers, "cache-control").join(",").toLowerCase();
  const seconds = (name: string) =>
    Number(new RegExp(`(?:^|[\\s,])${name}\\s*=\\s*"?(\\d+)`).exec(directives)?.[1] ?? Number.NaN);
  const has = (name: string) => new RegExp(`(?:^|[\\s,])${name}(?:$|[\\s,=])`).test(directives);
  if (freshForCdn(seen)) return true;
  if (has("no-store") || has("private") || has("no-cache")) return false;
  const shared = seconds("s-maxage");
  if (!Number.isNaN(shared)) return shared > 0;
  const age = seconds("max-age");
  // `public` alone lets a cache guess how long it is fresh (RFC 9111 4.2.2).
  if (has("public")) return age !== 0;
  // With Authorization a shared cache needs to be told so; with any other header it does not know of credentials.
  return age > 0 && (!authorization || has("must-revalidate"));
}

const KEYED = "not fresh for shared caches, or Vary names the credentials";

/** Whether a shared cache may keep it, and whether its key then holds the credentials. */
function cachingOf(t: Attempt, seen: Seen): { keyed: boolean; fresh: boolean; came: string } {
  const credentials = t.kit.profile.main.map(({ name }) => name.toLowerCase());
  const vary = headerValues(seen.headers, "vary")
    .join(",")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  const shown = ["Cache-Control", ...FOR_CDN, "Vary"]
    .map((name) => [name, headerValues(seen.headers, name.toLowerCase()).join(", ")] as const)
    .filter(([name, value]) => value !== "" || !FOR_CDN.includes(name));
  return {
    keyed: vary.includes("*") || credentials.every((name) => vary.includes(name)),
    fresh: sharedFreshness(seen, credentials.includes("authorization")),
    came: shown.map(([name, value]) => `${name}: ${value || "none"}`).join("; "),
  };
}

export const environment: readonly Rule[] = [
  rule("ENV-01", "The ETag is the same whatever encoding is accepted", {
    spec: ["2.4.2", "2.4.5"],
    reading:
      "With gzip, br, deflate or zstd accepted a read carries the same strong token, byte for byte, as with none; a projected read too.",
    hurts: "Browsers and most libraries accept gzip: they get a tag that their writes cannot use.",
    after: ["ETG-04"],
    async check(t) {
      t.needsStableTag();
      const bare = await t.state(t.kit.main, "control request: no coding accepted");
      const { stateQuery } = t.kit.deployment;
      const queries = [...new Set([stateQuery, "?fields=name", "?fields=id,name,email,status"])];
      for (const [codings, query] of [
        ...CODINGS.map((codings) => [codings, stateQuery] as const),
        ...queries.slice(1).map((query) => ["gzip", query] as const),
      ]) {
        const what = `${getOf(query)} with Accept-Encoding: ${codings}`;
        const read = await t.read(query, `ETag ${bare.tag}`, {
          headers: accepting(codings),
          what,
          body: false,
        });
        read.control({ differs: "no Accept-Encoding", seen: bare.seen });
        const { status, tag } = read.seen;
        if (status !== 200) continue;
        if (!read.must("present", tag !== undefined, `with Accept-Encoding: ${codings} no ETag comes`))
          continue;
        const found = `with Accept-Encoding: ${codings} the ETag of ${getOf(query)} is ${altered(tag, bare.tag)}, without it ${bare.tag}`;
        read.must("same", tag === bare.tag, found, OTHERS_MAY_CAUSE);
      }
      t.mustHaveLooked("no read with Accept-Encoding was answered 200");
    },
  }),
  rule("ENV-02", "A client that accepts gzip can write with the tag that it read", {
    spec: ["1.3", "3 accepted"],
    reading: "The answer to that write carries the new token, byte for byte.",
    hurts: "Every write of an ordinary client is refused as stale, forever.",
    needs: NEEDS.PUT,
    after: ["IFM-01", "IFM-30", "ETG-07"],
    async check(t) {
      const now = await t.control("PUT");
      const headers = accepting("gzip");
      const read = await t.get(t.kit.main, { headers, purpose: "read as an ordinary client" });
      if (read.tag === undefined)
        throw new CouldNotRun("a read that accepts gzip carries no ETag", ["ENV-01"]);
      const put = await t.write("PUT", {
        before: now,
        ifMatch: read.tag,
        headers,
        what: "the tag of a read that accepts gzip",
        allowed: "accepted",
      });
      put.mustAnswer("accepted", "2xx", OTHERS_MAY_CAUSE);
      for (const method of await t.updates()) await answeredTags(t, method);
    },
  }),
  rule("ENV-03", "The ETag of a 412 survives compression", {
    spec: ["4.2 412", "7 412"],
    reading: "Byte for byte, on PUT, PATCH and DELETE.",
    hurts: "A client that retries with the tag of the refusal is refused forever.",
    needs: NEEDS.PUT,
    after: ["ETG-04", "IFM-03", "IFM-07", "IFM-31", "IFM-41"],
    async check(t) {
      t.needsStableTag();
      for (const method of await t.updates()) await tagsOf412(t, method);
      const { deployment, ground } = t.kit;
      if (deployment.deleteOffered === true && ground.cannotMake === undefined) await tagsOf412(t, "DELETE");
    },
  }),
  rule("ENV-04", "A read after a write shows that write", {
    spec: ["3 accepted", "4.1 rule 8"],
    reading:
      "After an accepted PUT or PATCH, reads on new connections, with and without `fields`, and by HEAD, show the new token and values, to the other tenant too of a customer of its own: no cache or lagging copy answers with the old ones. After a DELETE that was answered 200 or 204, no read shows the customer under its last tag and a later one 404.",
    hurts: "A client merges on old values, or is told for minutes that its save was lost.",
    needs: NEEDS.PUT,
    after: ["ETG-04", "IFM-01", "IFM-30"],
    async check(t) {
      t.needsStableTag();
      for (let time = 0; time < (t.quick ? 1 : 3); time += 1) await freshReads(t, "PUT");
      if (await t.patchOffered()) await freshReads(t, "PATCH");
      const own = await readableCustomer(t, "other-tenant");
      if (own !== undefined) await freshReads(t, "PUT", own.customer);
      if (t.kit.deployment.deleteOffered === true && t.kit.ground.cannotMake === undefined)
        await freshlyGone(t);
    },
  }),
  rule("ENV-05", "No response lets a shared cache hand a customer to other callers", {
    spec: ["4.1 rule 8"],
    reading:
      "Where credentials are needed, no response to a read is marked fresh for shared caches unless Vary names the credentials: not 304, nor the refusal of a field, nor the 404 to another tenant. The same on an answer to PUT, and a field for CDNs alone beside Vary, are warnings.",
    hurts: "A proxy hands one caller's customer to another.",
    needs: ["credentials"],
    async check(t) {
      const { tag = '"kit-none"' } = await t.get(t.kit.main, { purpose: "read before" });
      const { limited, otherTenant } = t.kit.profile;
      const reads: readonly (readonly [how: string, query: string, options: ReadOptions])[] = [
        ["", "", {}],
        ["", "?fields=name", {}],
        [" with Accept-Encoding: gzip", "", { headers: accepting("gzip") }],
        [" with the current tag in If-None-Match", "", { headers: [["If-None-Match", tag]] }],
        ...(limited === undefined
          ? []
          : ["?fields=name", "?fields=id,name,email,status"].map(
              (query) => [" by the limited caller", query, { caller: "limited" }] as const,
            )),
        ...(otherTenant === undefined
          ? []
          : [[" by another tenant", "", { caller: "other-tenant" }] as const]),
      ];
      for (const [how, query, options] of reads) {
        const what = `${getOf(query)}${how}, its Cache-Control and Vary`;
        const read = await t.read(query, KEYED, { what, ...options });
        const { seen } = read;
        if (seen.status !== 200 && how === "")
          throw new NotApplicable(`${getOf(query)} was answered ${seen.status}; see ETG-01`);
        if (seen.status === 401 || saysNothing(seen, options.caller ?? "main")) continue;
        const { keyed, fresh, came } = cachingOf(t, seen);
        read.show(seen, { came });
        read.must("keyed", keyed || !fresh, `${came}: a shared cache may hand this to other callers`);
        const found = `${came}: a CDN may keep this, and many leave Vary out of their key`;
        read.should("keyed-by-cdn", !keyed || !freshForCdn(seen), found);
      }
      if (t.kit.options.mode === "read-only") return;
      const put = await t.write("PUT", {
        what: "the current tag, its Cache-Control and Vary",
        allowed: KEYED,
      });
      const { keyed, fresh, came } = cachingOf(t, put.seen);
      put.show(put.seen, { came });
      // No cache should keep it (RFC 9110 9.3.4).
      const found = `${came}: a cache that keeps answers to PUT may hand this to other callers`;
      put.should("keyed-put", keyed || !fresh || put.seen.text === "", found);
    },
  }),
];
