/** AUT: tenants, and requests without credentials. */

import type { Customer } from "../fixtures/ground.ts";
import { CouldNotRun, OTHERS_MAY_CAUSE } from "../http/outcome-signal.ts";
import { accepted, isClientError, isGone } from "../http/status.ts";
import type { Seen } from "../http/wire.ts";
import { type Answered, getOf } from "../probe/answered.ts";
import type { Attempt } from "../probe/attempt.ts";
import { inWords, tellsExistence } from "../probe/existence.ts";
import { holds } from "../probe/holds.ts";
import {
  BLANK,
  CURRENT,
  type Derive,
  EMPTY,
  firstOfEach,
  INEXACT,
  ifMatch,
  NEVER_GIVEN,
  NONE,
  type Refused,
  STALE,
} from "../probe/if-match-forms.ts";
import { refusedToMain } from "../probe/just-before.ts";
import { lists, otherPathsOf, pathEnd } from "../probe/other-paths.ts";
import type { Proof } from "../probe/proof.ts";
import { readBy } from "../probe/read-by.ts";
import type { Prepared } from "../probe/refused.ts";
import { type Rule, rule } from "../probe/rule.ts";
import { difference, type Method, type Snapshot, WRITABLE } from "../probe/snapshot.ts";
import type { AskOptions, Weight } from "../probe/trial.ts";
import {
  claims,
  manyTimes,
  otherMethods,
  otherWays,
  usualParameters,
  type WayOfReading,
} from "../probe/ways-of-reading.ts";
import { saysNothing } from "../probe/weather.ts";
import type { PatchForm } from "../target/patch-form.ts";

const asOther = (t: Attempt, query: string, to?: Customer, way?: WayOfReading): Promise<Answered> =>
  readBy(t, "other-tenant", query, "no 2xx, and no value of the customer", to, way);

const valuesIn = (seen: Seen, of: Snapshot) => WRITABLE.filter((field) => holds(seen, of.fields[field]));

function mustHideValues(proof: Proof, seen: Seen, of: Snapshot, what: string, weight: Weight = {}): void {
  const values = valuesIn(seen, of);
  const found = `${what}, answered ${seen.status}, holds the ${values.join(" and ")}`;
  proof.must("no-values", values.length === 0, found, weight);
}

const TAG_CHARACTERS_MIN = 8;

/** Whether the answer tells the tag: as its ETag, or in the text where the tag is too long to be there by chance. */
function tellsTag(seen: Seen, tag: string): boolean {
  return seen.tag === tag || (tag.length >= TAG_CHARACTERS_MIN && seen.text.includes(tag.slice(1, -1)));
}

/** What decides for the owner: to a stranger all of them must be one. */
const FORMS = [CURRENT, NONE, ...EMPTY, BLANK, STALE, NEVER_GIVEN, ...firstOfEach(INEXACT.star)];
/** Refused in a parser, which may load the customer for its answer and know no tenant. */
const WRONG_FORMS = firstOfEach(INEXACT.list, INEXACT.weak, INEXACT.unquoted);
const BAD_BODIES: readonly Derive[] = [
  (tag) => ({ what: "the current tag and an empty object", lines: ifMatch(tag), body: "{}" }),
  (tag) => ({ what: "the current tag and broken JSON", lines: ifMatch(tag), body: "{" }),
  () => ({ what: "no If-Match and an empty object", lines: [], body: "{}" }),
];

/** What hides a customer from its owner, as it is called in bodies; a binder of objects takes whichever it knows. */
const HIDING: readonly (readonly [names: readonly string[], value: () => unknown, onPutAlone?: true])[] = [
  // A column of any type but a number takes it.
  [["tenant", "Tenant"], () => crypto.randomUUID()],
  [["tenantId", "TenantId", "tenant_id"], () => crypto.randomUUID()],
  // The payload of a PATCH is not shown (4.3): it may be a way to delete.
  [["deleted", "isDeleted", "IsDeleted", "is_deleted", "archived"], () => true, true],
  [["deletedAt", "DeletedAt", "deleted_at"], () => new Date().toISOString(), true],
];

type Way = { readonly method: Method; readonly patchForm?: PatchForm };

/** Each method, and PATCH in each form of body that it takes. */
async function waysOfWriting(t: Attempt): Promise<Way[]> {
  const { ground, deployment } = t.kit;
  const ways: Way[] = [{ method: "PUT" }];
  if (await t.patchOffered()) {
    ways.push({ method: "PATCH" });
    for (const patchForm of await t.otherPatchForms()) ways.push({ method: "PATCH", patchForm });
  }
  if (deployment.deleteOffered !== false && ground.cannotMake === undefined) ways.push({ method: "DELETE" });
  return ways;
}

type Foreign = {
  readonly way: Way;
  readonly sent: Refused;
  /** The customer, updated once, so that it has a former tag. */
  readonly at: Prepared;
  readonly what: string;
};

/** The same request by the same stranger to a customer that nobody has. */
async function toNobody(t: Attempt, { way, sent }: Foreign): Promise<{ seen: Seen; id: string }> {
  const nobody = t.kit.ground.missing();
  const send = () =>
    t.sendWrite(way.method, nobody, {
      ...asSent(sent, way),
      purpose: "control request: a customer that nobody has",
    });
  let seen = await send();
  for (let again = 0; again < REFUSED_MAX && isRefusal(seen); again += 1) seen = await send();
  return { seen, id: nobody.id };
}

/** The other tenant may be refused by the environment as well: such an answer is asked for again. */
const REFUSED_MAX = 3;
const isRefusal = ({ status }: Seen) => status === 401 || status === 403;

const asSent = ({ lines, body }: Refused, { patchForm }: Way): AskOptions => ({
  ifMatch: lines,
  body,
  patchForm,
  caller: "other-tenant",
});

/** Every way of writing with every form; a customer that was not left alone is followed by another. */
async function foreignWrites(
  t: Attempt,
  all: readonly Derive[],
  /** @returns whether the customer is as before */
  look: (write: Foreign, proof: Answered) => Promise<boolean>,
): Promise<void> {
  await t.control("PUT");
  for (const way of await waysOfWriting(t)) {
    let at = await strangersTarget(t);
    for (const derive of all) {
      const sent = derive(at.now.tag, at.former, at.customer);
      if (sent === undefined || (way.method === "DELETE" && sent.body !== undefined)) continue;
      const form = way.patchForm === undefined ? "" : ` as ${way.patchForm.mediaType}`;
      const what = `by another tenant with ${sent.what}${form}`;
      const proof = await t.writeOnly(way.method, at.customer, {
        ...asSent(sent, way),
        what,
        allowed: "refused like one to a customer that nobody has; nothing changed",
      });
      if (proof.seen.status === 401)
        throw new CouldNotRun("the other tenant's credentials are refused with 401");
      const kept = await look({ way, sent, at, what: `${way.method} ${what}` }, proof);
      if (!kept) at = await strangersTarget(t);
    }
  }
}

/** Reads back what a stranger's write has done. @returns whether the customer is as before */
async function readBack(
  t: Attempt,
  at: Prepared,
  proof: Answered,
): Promise<{ same: boolean; now: () => string }> {
  const read = await t.get(at.customer, { query: t.kit.deployment.stateQuery, purpose: "read back" });
  const after = isGone(read.status) ? undefined : t.snapshot(read);
  const same = after !== undefined && t.same(at.now, after);
  proof.show(proof.seen, { before: at.now.seen, after: read, unchanged: same });
  return {
    same,
    now: () => (after === undefined ? "the customer is gone" : difference(at.now, after)),
  };
}

/** PUT by every other spelling of the address, the other methods by the one that most frameworks take for the same. */
async function writesByOtherPaths(t: Attempt): Promise<void> {
  let at = await strangersTarget(t);
  for (const way of await waysOfWriting(t)) {
    if (way.patchForm !== undefined) continue;
    const count = way.method === "PUT" ? otherPathsOf(t, at.customer).length : 1;
    for (let nth = 0; nth < count; nth += 1) {
      const path = otherPathsOf(t, at.customer)[nth] ?? at.customer;
      const what = `by another tenant with the current tag to ${pathEnd(path)}`;
      const proof = await t.writeOnly(way.method, at.customer, {
        ifMatch: ifMatch(at.now.tag),
        caller: "other-tenant",
        what,
        url: path.url,
        allowed: "nothing changed",
      });
      const { same, now } = await readBack(t, at, proof);
      proof.must("unchanged", same, now, OTHERS_MAY_CAUSE);
      if (!same) at = await strangersTarget(t);
    }
  }
}

/** To customers that were never updated: what is joined with their history finds none. */
async function writesOfFresh(t: Attempt): Promise<void> {
  for (const way of await waysOfWriting(t)) {
    if (way.patchForm !== undefined) continue;
    const customer = await t.kit.ground.make();
    const now = await t.state(customer, "read before");
    const proof = await t.writeOnly(way.method, customer, {
      ifMatch: now.tag,
      caller: "other-tenant",
      what: "by another tenant with the current tag to a customer that was never updated",
      allowed: "nothing changed",
    });
    const back = await readBack(t, { customer, former: now.tag, now }, proof);
    proof.must("unchanged", back.same, back.now, OTHERS_MAY_CAUSE);
  }
}

/** Of its own where one can be made: the other tenant may take it over. */
async function strangersTarget(t: Attempt): Promise<Prepared> {
  const customer = await t.ownCustomer();
  const control = await t.control("PUT", { to: customer, purpose: "make the tag stale" });
  return { customer, former: control.former, now: control };
}

/** Whether it is answered like a customer that nobody has: a DELETE may be idempotent (7 says 404 of GET and PUT alone). */
async function nobodysToo(t: Attempt, write: Foreign, { seen }: Answered): Promise<boolean> {
  if (write.way.method !== "DELETE" || seen.tags.length > 0 || valuesIn(seen, write.at.now).length > 0)
    return false;
  return (await toNobody(t, write)).seen.status === seen.status;
}

/** The answer is that to a customer that nobody has, in status, members, words and headers. */
async function mustTellNothing(
  proof: Answered,
  id: string,
  what: string,
  ask: (to: "customer" | "nobody") => Promise<{ seen: Seen; id: string }>,
): Promise<void> {
  const { seen } = proof;
  // A failure of the service tells nothing; 403 says no more than that the caller may not.
  if (seen.status >= 500 || seen.status === 403) return;
  const { differences, nobodys } = await tellsExistence(ask, { seen, id });
  if (nobodys.status >= 500) return;
  proof.control({ differs: "nobody has the customer", seen: nobodys, refused: !accepted(nobodys.status) });
  const same = !differences.some(({ what }) => what === "the status");
  const answer = `${what} was answered ${seen.status}`;
  // Without If-Match both are 428 (4.2, order of checks).
  proof.must(
    "as-nobodys",
    same,
    `${answer}, and to a customer that nobody has ${nobodys.status}: the difference tells that it exists`,
    { level: seen.status === 428 || nobodys.status === 428 ? "MUST" : "SHOULD" },
  );
  const tells = () =>
    `${answer}, which tells that the customer exists: ${inWords(differences)} to an id that nobody has`;
  if (same) proof.should("same-words", differences.length === 0, tells);
}

/** Of a customer that was never updated: what is joined with its history finds none. */
async function readsOfFresh(t: Attempt): Promise<void> {
  const customer = await t.neverUpdated();
  if (customer === undefined) return;
  const now = await t.state(customer, "read by the owner");
  for (const query of ["", "?fields=name"]) {
    const what = `another tenant's ${getOf(query)} of a customer that was never updated`;
    const read = await asOther(t, query, customer);
    const { status } = read.seen;
    read.must("refused", !accepted(status), `${what} was answered ${status}, not refused`);
    mustHideValues(read, read.seen, now, what);
  }
}

/** Right after requests of the owner that were refused, and the owner right after one of the stranger. */
async function readsJustAfter(t: Attempt, main: Snapshot): Promise<void> {
  for (const [what, happens] of refusedToMain(t, t.kit.main)) {
    await happens();
    const read = await asOther(t, "", t.kit.main, [`right after ${what}`, {}]);
    const { status } = read.seen;
    read.must("refused", !accepted(status), `${read.evidence.probe} was answered ${status}, not refused`);
    mustHideValues(read, read.seen, main, read.evidence.probe);
  }
  const query = "?fields=kitunknown";
  await t.get(t.kit.main, { query, caller: "other-tenant", purpose: "right before" });
  const what = `GET by the owner, right after another tenant's ${getOf(query)}`;
  const own = await t.read("", "200", { what });
  if (!saysNothing(own.seen, "main")) own.mustAnswer("owner-unaffected", 200, OTHERS_MAY_CAUSE);
}

/** Headers on which a read may take another way through the service. */
const READ_HEADERS = (tag: string): readonly WayOfReading[] => [
  ["", {}],
  ["with the current tag in If-None-Match", { headers: [["If-None-Match", tag]] }],
  ["with If-None-Match *", { headers: [["If-None-Match", "*"]] }],
  ["with Accept-Encoding: gzip", { headers: [["Accept-Encoding", "gzip"]] }],
];

/** A check that is bound to GET alone. */
async function headTellsNoTag(
  t: Attempt,
  caller: "other-tenant" | "anonymous",
  who: string,
  tag: string,
): Promise<void> {
  // Such a run promises to send nothing but GET.
  if (t.kit.options.mode === "read-only") return;
  const { main } = t.kit;
  const allowed = `not the tag ${tag}`;
  const proof = t.proof(`HEAD by ${who}`, allowed);
  const seen = await t.send({ purpose: "probe", caller, method: "HEAD", url: main.url, headers: [] });
  proof.show(seen);
  proof.should("no-tag-by-head", seen.tag !== tag, `HEAD by ${who} was answered ${seen.status} with ${tag}`);
}

/** Callers whom the service does not know. */
const unknownCallers = (t: Attempt) =>
  UNKNOWN.filter(([caller]) => caller !== "lengthened" || t.kit.wire.hasLengthened);
const UNKNOWN = [
  ["anonymous", "without credentials"],
  ["garbled", "with a credential that nobody has"],
  ["lengthened", "with the credential and -kit after it"],
] as const;
const UNKNOWN_READING =
  "A request without credentials that the service knows has neither role nor tenant. The mechanism is open, hence a warning, unless credentials are seen to decide: the other tenant or the limited caller is refused what comes without any.";

/** Whether the policy is seen to gate this customer by credentials (5.2): then leaving them out, or making them up, bypasses it. */
async function isGated(t: Attempt): Promise<boolean> {
  const { otherTenant, limited } = t.kit.profile;
  const refused = async (caller: "other-tenant" | "limited") => {
    const purpose = `control request: what the ${caller} caller is refused`;
    const { status } = await t.get(t.kit.main, { caller, query: "?fields=name,email", purpose });
    return isClientError(status) && status !== 429;
  };
  return (
    (otherTenant !== undefined && (await refused("other-tenant"))) ||
    (limited !== undefined && (await refused("limited")))
  );
}

export const tenants: readonly Rule[] = [
  rule("AUT-08", "Another tenant cannot read the customer", {
    spec: ["4.1 rule 6", "5.2", "4.1 rule 8"],
    reading:
      "No 2xx and no value, with and without `fields`, in capitals and in a long list. To HEAD, OPTIONS and POST, and where the address is spelled otherwise, the status is open, and no value comes either; nor in a list of customers, where there is one.",
    hurts: "One tenant reads another's customers.",
    needs: ["other-tenant"],
    async check(t) {
      const main = await t.state(t.kit.main, "control request: the main caller");
      for (const query of [
        "",
        "?fields=name",
        "?fields=id",
        "?fields=status",
        "?fields=id,name,email,status",
      ]) {
        const before = await t.get(t.kit.main, { query, purpose: "the owner reads before the stranger" });
        let status = 0;
        for (const way of READ_HEADERS(main.tag)) {
          const [how, shape] = way;
          const read = await asOther(t, query, t.kit.main, way);
          read.control({ differs: "the main caller asks", seen: before });
          status = read.seen.status;
          const what = `another tenant's ${getOf(query)} ${how}`.trim();
          read.mustAnswer("refused", "4xx");
          mustHideValues(read, read.seen, main, what);
          if (accepted(status)) continue;
          await mustTellNothing(read, t.kit.main.id, what, async (to) => {
            const asked = to === "customer" ? t.kit.main : t.kit.ground.missing();
            return { seen: await t.get(asked, { ...shape, query, caller: "other-tenant" }), id: asked.id };
          });
        }
        // A cache that keys on the URL alone now hands the stranger's refusal to the owner.
        const own = await t.read(query, `${before.status}, as before the stranger's`, {
          what: `${getOf(query)} by the owner, after another tenant's was answered ${status},`,
        });
        own.mustAnswer("owner-unaffected", before.status, OTHERS_MAY_CAUSE);
      }
      for (const query of ["?fields=NAME,EMAIL", manyTimes("name")]) {
        const read = await asOther(t, query);
        const { status } = read.seen;
        const what = `another tenant's GET ${query}`;
        read.must("refused", !accepted(status), `${what} was answered ${status}, not refused`);
        mustHideValues(read, read.seen, main, what);
      }
      const ways = [...otherWays(t), ...claims(t, ""), ...otherMethods(t)];
      const reads = [
        ...ways.map((way) => ["", way] as const),
        ...usualParameters(t).map((parameter) => [`?${parameter}`, undefined] as const),
      ];
      for (const [query, way] of reads) {
        const read = await asOther(t, query, t.kit.main, way);
        mustHideValues(read, read.seen, main, read.evidence.probe);
      }
      await readsOfFresh(t);
      await readsJustAfter(t, main);
      for (const customer of otherPathsOf(t))
        for (const query of ["", "?fields=name,email"]) {
          const read = await asOther(t, query, customer);
          mustHideValues(read, read.seen, main, `another tenant's GET ${pathEnd(customer)}${query}`);
        }
      for (const list of lists(t)) {
        const read = await asOther(t, "", list);
        mustHideValues(read, read.seen, main, read.evidence.probe);
      }
    },
  }),
  rule("AUT-09", "Another tenant cannot change the customer, whatever tag it sends", {
    spec: ["5.2", "4.1 rule 6"],
    reading: "Where the address is spelled otherwise the status is open, and nothing is changed either.",
    hurts: "One tenant overwrites or deletes another's customers.",
    needs: ["other-tenant", "write"],
    after: ["IFM-01"],
    async check(t) {
      await foreignWrites(t, FORMS, async (write, proof) => {
        const { status } = proof.seen;
        const { same, now } = await readBack(t, write.at, proof);
        const refused = !accepted(status) || (same && (await nobodysToo(t, write, proof)));
        proof.must("refused", refused, `${write.what} was answered ${status}`);
        proof.must("unchanged", same, now, OTHERS_MAY_CAUSE);
        return same;
      });
      await writesByOtherPaths(t);
      if (t.kit.ground.cannotMake === undefined) await writesOfFresh(t);
    },
  }),
  rule("AUT-10", "Another tenant never learns the current tag, nor that the customer exists", {
    spec: ["5.2", "4.1 rule 6"],
    reading:
      "The tenant is checked before the token and the body: no refusal to another tenant, also of a list, `*`, a weak or an unquoted tag, carries the token or a value, and none but 403 differs from that of a customer that nobody has. The document knows no HEAD; one that carries the token is a warning.",
    hurts: "A 412 tells a stranger that the customer exists and when it changes.",
    needs: ["other-tenant", "write"],
    after: ["IFM-01"],
    async check(t) {
      const main = await t.state(t.kit.main, "control request: the main caller");
      const read = await asOther(t, "");
      const carries = `the answer ${read.seen.status} to another tenant's GET carries the tag ${main.tag}`;
      if (!accepted(read.seen.status)) {
        const told = !read.must("no-tag", !tellsTag(read.seen, main.tag), carries);
        if (!told) await headTellsNoTag(t, "other-tenant", "another tenant", main.tag);
      }
      const more = t.leavesOut("a list, a weak and an unquoted tag by another tenant") ? [] : WRONG_FORMS;
      await foreignWrites(t, [...FORMS, ...more, ...BAD_BODIES], async (write, proof) => {
        const { way, sent, at, what } = write;
        const { seen } = proof;
        // AUT-09 blames it.
        if (accepted(seen.status)) return false;
        const found = `the answer ${seen.status} to ${what} carries the tag ${at.now.tag}`;
        proof.must("no-tag", !tellsTag(seen, at.now.tag), found);
        mustHideValues(proof, seen, at.now, what);
        const again = async () => {
          const options = { ...asSent(sent, way), purpose: "the same request again" };
          return { seen: await t.sendWrite(way.method, at.customer, options), id: at.customer.id };
        };
        await mustTellNothing(proof, at.customer.id, what, (to) =>
          to === "customer" ? again() : toNobody(t, write),
        );
        return true;
      });
    },
  }),
  rule("AUT-11", "Unknown fields are refused to every caller alike", {
    level: "SHOULD",
    spec: ["4.1 rule 5"],
    reading: "400 before any data is read, so also for another tenant's customer.",
    hurts: "The answer tells a stranger whether the customer exists.",
    needs: ["other-tenant"],
    async check(t) {
      const query = "?fields=kitunknown";
      const control = await t.get(t.kit.main, { query, purpose: "control request: the main caller" });
      if (!isClientError(control.status))
        throw new CouldNotRun(`an unknown field is answered ${control.status}`, ["FLD-03"]);
      let read = await asOther(t, query);
      for (let again = 0; again < REFUSED_MAX && isRefusal(read.seen); again += 1)
        read = await asOther(t, query);
      read.control({ differs: "the main caller asks", seen: control });
      read.mustAnswer("status", control.status);
    },
  }),
  rule("AUT-12", "Nothing personal is read without credentials, or with wrong ones", {
    spec: ["5.2"],
    reading: UNKNOWN_READING,
    hurts: "Personal data reaches someone who may not see it.",
    needs: ["credentials"],
    async check(t) {
      const main = await t.state(t.kit.main, "control request: the main caller");
      const bare = t.kit.main;
      const level = (await isGated(t)) ? "MUST" : "SHOULD";
      for (const [to, query] of [
        [bare, ""],
        [bare, "?fields=email"],
        [bare, "?fields=name"],
        ...otherPathsOf(t).map((each) => [each, ""] as const),
      ] as const) {
        for (const [caller, how] of unknownCallers(t)) {
          if (caller === "lengthened" && to !== bare) continue;
          const what = `GET ${to === bare ? "" : pathEnd(to)}${query} ${how}`;
          const read = await t.read(query, "no personal data", { to, caller, what, body: false });
          mustHideValues(read, read.seen, main, what, { level });
          if (to === bare && query === "" && caller === "anonymous" && !accepted(read.seen.status))
            await headTellsNoTag(t, caller, "a caller without credentials", main.tag);
        }
      }
    },
  }),
  rule("AUT-13", "Nothing is written without credentials, or with wrong ones", {
    spec: ["5.2"],
    reading: UNKNOWN_READING,
    hurts: "Anyone who knows an address overwrites or deletes the customer.",
    needs: ["credentials", "write"],
    after: ["IFM-01"],
    async check(t) {
      await t.control("PUT");
      const level = (await isGated(t)) ? "MUST" : "SHOULD";
      for (const way of await waysOfWriting(t)) {
        let at = await strangersTarget(t);
        for (const [caller, how] of unknownCallers(t))
          for (const derive of caller === "lengthened" ? [CURRENT] : FORMS) {
            const sent = derive(at.now.tag, at.former, at.customer);
            if (sent === undefined) continue;
            const write = await t.write(way.method, {
              ...asSent(sent, way),
              caller,
              to: at.customer,
              before: at.now,
              what: `${sent.what}, ${how}`,
              allowed: "refused, and nothing changed",
            });
            write.mustNotChange({ level });
            if (write.unchanged && write.after !== undefined) at.now = write.after;
            else at = await strangersTarget(t);
          }
      }
    },
  }),
  rule("AUT-17", "A body hides no customer from its owner", {
    spec: ["4.2 body", "3 accepted", "5.2"],
    reading:
      "A tenant in the body of a PUT or PATCH, or a mark of deletion in that of a PUT, is refused or ignored: afterwards the owner still reads the customer.",
    hurts: "A client gives a customer away to another tenant, deletes it without a DELETE, or loses it.",
    needs: ["write", "create"],
    after: ["IFM-01", "IFM-30"],
    async check(t) {
      const short = t.leavesOut("each kind of such members in a body of its own");
      let to = await t.kit.ground.make();
      for (const method of await t.updates()) {
        const control = await t.control(method, { to });
        let { tag } = control;
        const kinds = HIDING.filter(([, , onPutAlone]) => method === "PUT" || onPutAlone !== true);
        const sets = kinds.map(([names, value]) => Object.fromEntries(names.map((name) => [name, value()])));
        for (const members of short ? [Object.assign({}, ...sets)] : sets) {
          const what = `with ${Object.keys(members).join(", ")} in the body`;
          const proof = await t.writeOnly(method, to, {
            what,
            allowed: "a 4xx, or the member ignored",
            ifMatch: tag,
            members,
          });
          const after = await t.get(to, { query: t.kit.deployment.stateQuery, purpose: "read back" });
          proof.show(proof.seen, { before: control.seen, after });
          proof.control({ differs: "no such member", seen: control.written.seen });
          const gone = isClientError(after.status) && after.status !== 429;
          const found = `after ${method} ${what}, answered ${proof.seen.status}, the owner's read is answered ${after.status}`;
          proof.must("kept", !gone, found);
          if (gone) to = await t.kit.ground.make();
          tag = gone ? (await t.state(to)).tag : (after.tag ?? tag);
        }
      }
    },
  }),
];
