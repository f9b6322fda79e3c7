/** ETG: the entity-tag of a customer. */

import { CouldNotRun, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { type Answered, getOf } from "../../probe/answered.ts";
import type { Attempt, ReadOptions } from "../../probe/attempt.ts";
import { BY_MAKER, MAKERS } from "../../probe/callers/own-customers.ts";
import { headIsGet } from "../../probe/requests/by-head.ts";
import { pathEnd, takenPaths } from "../../probe/requests/other-paths.ts";
import { isEntityTag, opaque, visible } from "../../probe/requests/tag-forms.ts";
import {
  LONG_AGO,
  OTHER_MEDIA_TYPES,
  OTHER_WAYS,
  UNKNOWN_PARAMETER,
  usualHeaders,
  type WayOfReading,
} from "../../probe/requests/ways-of-reading.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import type { Snapshot } from "../../probe/snapshot.ts";
import { bodyWithoutToken } from "../../probe/token/body-token.ts";
import { leaksOf, traceOf } from "../../probe/token/tag-leak.ts";
import { FIELDS } from "../../target/profile-file.ts";
import { COMBINATIONS } from "../../target/projections.ts";
import { tagChanges } from "./tag-changes.ts";

/** Every set of fields, so that one that has another tag is not blamed on a caller (AUT-06). */
const PROJECTIONS = [...FIELDS, ...COMBINATIONS.map((fields) => fields.join())];
const STANDARD = "Clients and proxies that read the standard drop or mangle it, or may not send it back.";

async function tagged(t: Attempt): Promise<Answered & { tag: string }> {
  const read = await t.read("", "one strong, quoted entity-tag", {
    what: "GET of an existing customer",
    body: false,
  });
  const { status, tag } = read.seen;
  if (status !== 200 || tag === undefined) throw new CouldNotRun("a read carries no ETag", ["ETG-01"]);
  return Object.assign(read, { tag });
}

/** Why a field value is no entity-tag. */
function notATag(value: string): string {
  const odd = [...new Set(opaque(value).replace(/[\x21\x23-\x7e\x80-\xff]/g, ""))].map(visible);
  const why = /^(?:W\/)?".*"$/s.test(value)
    ? `it holds a blank or a character that none may hold: ${odd.join(" ")}`
    : "it is not in double quotes";
  return `ETag: ${visible(value)} is no quoted entity-tag: ${why}`;
}

/** Others' reads, and reads of other shapes, on which a service may count a read as a change. */
async function otherReads(t: Attempt, tag: string): Promise<void> {
  const { profile, main, options } = t.kit;
  for (const query of ["?fields=name", "?fields=id,status", "?fields=kitunknown"])
    await t.get(main, { query, purpose: "a read of another shape" });
  if (profile.limited !== undefined)
    await t.get(main, { caller: "limited", purpose: "a read by the limited caller" });
  if (profile.otherTenant !== undefined)
    await t.get(main, { caller: "other-tenant", purpose: "a read by another tenant" });
  for (const held of ['"kit-other"', tag])
    await t.get(main, { headers: [["If-None-Match", held]], purpose: "a conditional read" });
  // Such a run sends nothing but GET.
  if (options.mode !== "read-only") await t.get(main, { sentAs: "HEAD", purpose: "HEAD" });
}

/** Whether such a read is taken is open. */
async function sameHoweverAsked(t: Attempt, full: Answered & { tag: string }): Promise<void> {
  const ways: readonly WayOfReading[] = [
    ...OTHER_MEDIA_TYPES,
    ...OTHER_WAYS,
    ...usualHeaders(t),
    ["with Range: bytes=0-9", { headers: [["Range", "bytes=0-9"]] }],
    ["with If-Modified-Since", { headers: [["If-Modified-Since", LONG_AGO]] }],
  ];
  const reads: readonly (readonly [what: string, query: string, options: ReadOptions])[] = [
    ...ways.map(([how, shape]) => [`GET ${how}`, "", shape] as const),
    [`GET ?${UNKNOWN_PARAMETER}`, `?${UNKNOWN_PARAMETER}`, {}],
    ...(await takenPaths(t)).map((to) => [`GET ${pathEnd(to)}`, "", { to }] as const),
  ];
  for (const [what, query, options] of reads) {
    const read = await t.read(query, `ETag ${full.tag}`, { ...options, what, body: false });
    read.control({ differs: "a plain read", seen: full.seen });
    const { status, tag, object } = read.seen;
    // A page for people may have a tag of its own.
    if (status !== 206 && (status !== 200 || object === undefined)) continue;
    const found = `${what} carries ${tag ?? "no ETag"}, a plain read ${full.tag}`;
    read.must("same-however-asked", tag === full.tag, found, OTHERS_MAY_CAUSE);
  }
  await sameByHead(t, full);
}

async function sameByHead(t: Attempt, full: Answered & { tag: string }): Promise<void> {
  if (!(await headIsGet(t))) return;
  for (const query of ["", "?fields=name"]) {
    // What a projection carries is judged where GET asks for it.
    const same = query === "" ? full.seen : await t.get(t.kit.main, { query, purpose: "the same by GET" });
    const what = `HEAD${query && ` ${query}`}`;
    const read = await t.read(query, `ETag ${same.tag}`, { sentAs: "HEAD", what, body: false });
    read.control({ differs: "GET", seen: same });
    const { status, tag } = read.seen;
    if (status !== 200 || same.tag === undefined) continue;
    const found = `${what} carries ${tag ?? "no ETag"}, GET ${same.tag}`;
    if (read.should("tag-of-head", tag !== undefined, found))
      read.must("same-by-head", tag === same.tag, found, OTHERS_MAY_CAUSE);
  }
}

/** A version may be given with the first update, or be read from elsewhere until then. */
async function sameBeforeAnyUpdate(t: Attempt): Promise<void> {
  const to = await t.neverUpdated();
  if (to === undefined) return;
  const { tag } = await t.state(to, "read before");
  const what = "GET ?fields=name of a customer that was never updated";
  const read = await t.read("?fields=name", `ETag ${tag}`, { to, what, body: false });
  const found = `${what} carries ${read.seen.tag ?? "no ETag"}, the full read ${tag}`;
  if (read.seen.status === 200) read.must("same", read.seen.tag === tag, found, OTHERS_MAY_CAUSE);
}

/** Reads of another role or tenant may pass through other code. */
async function taggedForItsMaker(t: Attempt): Promise<void> {
  for (const maker of MAKERS) {
    const to = await t.kit.ground.madeBy(maker);
    if (to === undefined) continue;
    for (const query of ["", "?fields=name"]) {
      const what = `${getOf(query)} ${BY_MAKER[maker]}`;
      const read = await t.read(query, "an ETag", { to, caller: maker, what });
      // A page for people is no answer.
      if (read.seen.status === 200 && read.seen.object !== undefined)
        read.must("etag", read.seen.tag !== undefined, `the answer to ${what} carries no ETag`);
    }
  }
}

/** In turns without a rhythm, in which no counter follows. */
const TURNS = ["one", "other", "other", "one", "other", "one"] as const;

async function followsNothing(t: Attempt): Promise<void> {
  // A tag may hold the length of what was stored, which gives nobody away.
  const [one, other] = t.kit.values.nextTwoOfOneLength(["abcdef", "uvwxyz"]);
  const tags = { one: [] as string[], other: [] as string[] };
  const turns = [...TURNS, ...TURNS];
  for (const [index, turn] of turns.entries()) {
    const { tag, written } = await t.control("PUT", { values: turn === "one" ? one : other });
    tags[turn].push(opaque(tag));
    if (index + 1 < TURNS.length) continue;
    const trace = traceOf(tags.one, tags.other);
    // In a few tags it may be chance, such as the name of the process that answered.
    if (trace !== undefined && index + 1 < turns.length) continue;
    const found = () =>
      `of ${index + 1} PUTs of two pairs of values in turns, each tag of one pair holds ${trace?.[0]}, and each of the other ${trace?.[1]} in its place`;
    written.must("no-trace", trace === undefined, found);
    return;
  }
}

export const etag: readonly Rule[] = [
  rule("ETG-01", "A read answers 200 with a JSON object and an ETag", {
    spec: ["1.1", "1.2", "3 GET", "4.1 200", "2.4.1"],
    reading: "Also in reads by the limited caller and by another tenant of customers that they have made.",
    hurts: "Without the token no client can write at all.",
    async check(t) {
      const read = await t.read("", "200, a JSON object, an ETag", { what: "GET of an existing customer" });
      const { object, text, tag } = read.seen;
      read.mustAnswer("status", 200);
      const found = `the body is no JSON object: ${JSON.stringify(text.slice(0, 60))}`;
      read.must("object", object !== undefined, found);
      read.must("etag", tag !== undefined, "the answer carries no ETag");
      if (t.kit.options.mode !== "read-only") await taggedForItsMaker(t);
    },
  }),
  rule("ETG-02", "The ETag is one quoted entity-tag", {
    spec: ["2.4.2"],
    reading: "With the characters that RFC 9110 8.8.3 allows, in one header line.",
    hurts: STANDARD,
    async check(t) {
      const read = await tagged(t);
      const { tags } = read.seen;
      read.must("one-line", tags.length === 1, `${tags.length} ETag lines came: ${tags.join(" and ")}`);
      read.must("syntax", isEntityTag(read.tag), notATag(read.tag));
    },
  }),
  rule("ETG-03", "The ETag is strong", {
    spec: ["2.4.5"],
    hurts: "A client that keeps to RFC 9110 may not send a weak tag in If-Match, so it cannot write.",
    async check(t) {
      const read = await tagged(t);
      read.must("strong", !/^W\//i.test(read.tag), `ETag: ${read.tag} is weak`);
    },
  }),
  rule("ETG-04", "Reading alone never changes the ETag", {
    spec: ["3 GET"],
    reading: "For every caller, every projection and every connection; nor does HEAD or a 304.",
    hurts: "Every write would be refused as stale although nobody else wrote.",
    async check(t) {
      const before = t.kit.wire.onlooker.knownTags(new URL(t.kit.main.url).pathname);
      const first = await tagged(t);
      for (let count = 0; count < 7; count += 1) {
        if (count === 6) await otherReads(t, first.tag);
        // Every other read opens a connection of its own, so that it may reach another process of the service.
        const next = await t.read("", `ETag ${first.tag}`, {
          what: count === 6 ? "GET after reads by others" : "another GET",
          via: count % 2 === 0 ? "socket" : "undici",
          body: false,
        });
        const { tag } = next.seen;
        if (tag !== first.tag && tag !== undefined && before.has(tag))
          throw new CouldNotRun("reads show former states in turn with the current one", ["ENV-04"]);
        const found = `by reading alone, without any write, the ETag went from ${first.tag} to ${tag}`;
        next.must("stable", tag === first.tag, found, OTHERS_MAY_CAUSE);
      }
    },
  }),
  rule("ETG-05", "The ETag depends neither on fields nor on how a read is asked", {
    spec: ["2.4.7", "2.4.3", "3 GET"],
    reading:
      "Another parameter, language, version of HTTP or spelling of the address, a part of the body (Range), a date: each read that is answered carries the token of the customer. So does one with another `Accept`, where JSON is the answer. HEAD, where it finds the customer and no other one, may carry none, with a warning.",
    hurts: "A client that read a projection is refused as stale, or two clients guard different things.",
    after: ["ETG-04"],
    async check(t) {
      t.needsStableTag();
      const full = await tagged(t);
      for (const fields of PROJECTIONS) {
        const read = await t.read(`?fields=${fields}`, `ETag ${full.tag}`, { body: false });
        const { status, tag } = read.seen;
        if (status !== 200) continue;
        if (!read.must("present", tag !== undefined, `GET ?fields=${fields} carries no ETag`)) continue;
        const found = `GET ?fields=${fields} carries ${tag}, the full read ${full.tag}`;
        read.must("same", tag === full.tag, found, OTHERS_MAY_CAUSE);
      }
      t.mustHaveLooked("no projected read was answered 200", "FLD-01");
      await sameHoweverAsked(t, full);
      if (t.failures.length === 0) await sameBeforeAnyUpdate(t);
    },
  }),
  rule("ETG-06", "The tag of a projected read is accepted by a write", {
    spec: ["2.4.7", "1.3"],
    hurts: "Clients that read sparsely can never write.",
    needs: ["write"],
    after: ["ETG-04", "IFM-01"],
    async check(t) {
      t.needsStableTag();
      let now: Snapshot = await t.control("PUT");
      for (const fields of ["name", "id,status"]) {
        const read = await t.get(t.kit.main, { query: `?fields=${fields}`, purpose: "projected read" });
        if (read.status !== 200 || read.tag === undefined) continue;
        const put = await t.write("PUT", {
          ifMatch: read.tag,
          before: now,
          what: `the tag of GET ?fields=${fields}`,
        });
        put.mustAnswer("accepted", "2xx", OTHERS_MAY_CAUSE);
        now = put.now;
      }
      t.mustHaveLooked("no projected read came with a tag", "FLD-01", "ETG-05");
    },
  }),
  rule("ETG-13", "The ETag gives away no customer data", {
    spec: ["2.4.4", "5.5"],
    reading:
      "Neither the personal data in a usual encoding nor a raw hash of it or of the body; of a customer that was never updated too.",
    hurts: "Tags stand in access logs and caches: anyone who sees one can test guesses about name and email.",
    async check(t) {
      const fresh = await t.neverUpdated();
      for (const [customer, what] of [
        [t.kit.main, ""],
        ...(fresh === undefined ? [] : [[fresh, " of a customer that was never updated"] as const]),
      ] as const) {
        const { seen, tag, fields } = await t.state(customer, "read before");
        const probe = `GET${what}, its ETag against the data`;
        const proof = t.proof(probe, "no data and no hash of it in the token");
        proof.show(seen, { came: `ETag ${tag}` });
        const leaks = leaksOf(opaque(tag), fields, seen.text);
        const of = (kind: "data" | "hash") =>
          leaks.filter((leak) => leak.kind === kind).map(({ what }) => what);
        for (const kind of ["data", "hash"] as const)
          proof.must(`no-${kind}`, of(kind).length === 0, () => of(kind).join("; "));
      }
    },
  }),
  rule("ETG-19", "No part of the ETag follows the values", {
    spec: ["2.4.4", "5.5"],
    reading:
      "Two names and emails of one length are written in turns. No character of the tag comes and goes with them, whatever encoding, compression or short hash makes them.",
    hurts:
      "Anyone who sees two tags can tell whether a customer is unchanged, and can test guesses about name and email.",
    needs: ["write"],
    after: ["ETG-13", "IFM-01", "ETG-08"],
    check: followsNothing,
  }),
  rule("ETG-14", "The row version is not a body field", {
    spec: ["2.1 RowVersion", "9.1"],
    reading:
      "No member of a read, or of the answer to a write, carries it at any depth. A member of that name with another value is a warning.",
    hurts: "Clients come to depend on a second version mechanism that nobody enforces.",
    async check(t) {
      const { seen } = await tagged(t);
      if (seen.object === undefined) throw new CouldNotRun("the body is no JSON object", ["ETG-01"]);
      bodyWithoutToken(t, "a read", seen);
      if (t.kit.options.mode === "read-only") return;
      // A write may answer with a body that another piece of code makes.
      for (const method of await t.updates()) {
        const { seen: answer, accepted } = await t.write(method, { purpose: "write" });
        const shown = t.fieldsOf(answer);
        // An answer that shows no customer is of a shape that nobody has fixed.
        if (accepted && (shown.name ?? shown.email) !== undefined)
          bodyWithoutToken(t, `the answer to ${method}`, answer);
      }
    },
  }),
  rule("ETG-16", "A conditional read is answered 304 for the current tag alone", {
    spec: ["3 GET", "4.1 200"],
    reading:
      "If-None-Match with a former tag, or with others, is answered as if it were not there (RFC 9110 13.1.2), also beside If-Modified-Since, which it replaces (13.1.3). With the current tag 304 and 200 will do. If-Modified-Since alone is never answered 304 with a date before the last change.",
    hurts: "A client keeps its old copy for the current one and merges on it.",
    after: ["ETG-04", "ETG-08"],
    async check(t) {
      t.needsStableTag();
      const { mode } = t.kit.options;
      const control = mode === "read-only" ? undefined : await t.control("PUT");
      const { tag, seen } = control ?? (await t.state(t.kit.main, "control request: no If-None-Match"));
      const former = control?.former ?? tag;
      const others: readonly (readonly [what: string, value: string])[] = [
        ["another tag", '"kit-other"'],
        ["a list of other tags", '"kit-other", "kit-third"'],
        ...(former === tag ? [] : [["the former tag", former] as const]),
      ];
      for (const query of ["", "?fields=name"])
        for (const [what, value] of others) {
          const name = `${getOf(query)} with ${what} in If-None-Match`;
          const read = await t.read(query, `200 with ETag ${tag}`, {
            what: name,
            headers: [["If-None-Match", value]],
          });
          read.control({ differs: "no If-None-Match", seen: control?.written.afterSeen ?? seen });
          const found = `${name} was answered 304, while the current tag is ${tag}`;
          read.must("not-304", read.seen.status !== 304, found, { othersMayCause: value === former });
        }
      if (t.kit.profile.limited !== undefined && former !== tag) {
        const what = "GET with the former tag in If-None-Match by the limited caller";
        const headers = [["If-None-Match", former]] as const;
        const read = await t.read("", `no 304: the current tag is ${tag}`, {
          what,
          headers,
          caller: "limited",
        });
        const found = `${what} was answered 304, while the current tag is ${tag}`;
        read.must("not-304", read.seen.status !== 304, found, OTHERS_MAY_CAUSE);
      }
      const since = "If-Modified-Since";
      const dates: readonly (readonly [what: string, headers: [string, string][]])[] = [
        [`a date long ago in ${since}`, [[since, LONG_AGO]]],
        [
          `another tag in If-None-Match and the time of now in ${since}`,
          [
            ["If-None-Match", '"kit-other"'],
            [since, new Date().toUTCString()],
          ],
        ],
      ];
      for (const [what, headers] of dates) {
        const read = await t.read("", `200 with ETag ${tag}`, { what: `GET with ${what}`, headers });
        read.control({ differs: `no ${since}`, seen: control?.written.afterSeen ?? seen });
        read.must("not-304", read.seen.status !== 304, `GET with ${what} was answered 304`);
      }
      const confirmed = await t.read("", `304 or 200, ETag ${tag}`, {
        what: "GET with the current tag in If-None-Match",
        headers: [["If-None-Match", tag]],
      });
      const shown = confirmed.seen.tag;
      const found = `the 304 for ${tag} carries ${shown ?? "no ETag"}`;
      confirmed.should("tag-of-304", confirmed.seen.status !== 304 || shown === tag, found);
    },
  }),
  ...tagChanges,
].toSorted((a, b) => a.id.localeCompare(b.id));
