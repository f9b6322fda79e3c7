/** AUT: tenants, and requests without credentials. */

import type { Customer } from "../fixtures/ground.ts";
import { CouldNotRun, OTHERS_MAY_CAUSE } from "../http/outcome-signal.ts";
import type { Seen } from "../http/wire.ts";
import type { Answered } from "../probe/answered.ts";
import type { Attempt } from "../probe/attempt.ts";
import { holds } from "../probe/holds.ts";
import { ifMatch } from "../probe/if-match-forms.ts";
import { otherPaths, pathEnd } from "../probe/other-paths.ts";
import type { Proof } from "../probe/proof.ts";
import { type Rule, rule } from "../probe/rule.ts";
import { accepted, difference, type Method, type Snapshot } from "../probe/snapshot.ts";
import type { AskOptions } from "../probe/trial.ts";

async function asOther(t: Attempt, query: string, to: Customer = t.kit.main): Promise<Answered> {
  const what = `GET ${to === t.kit.main ? "" : pathEnd(to)}${query} by another tenant`;
  const allowed = "no 2xx, and no value of the customer";
  const read = await t.read(query, allowed, { to, caller: "other-tenant", what });
  if (read.seen.status === 401) throw new CouldNotRun("the other tenant's credentials are refused with 401");
  return read;
}

const valuesIn = (seen: Seen, of: Snapshot) =>
  (["name", "email"] as const).filter((field) => holds(seen, of.fields[field]));

function mustHideValues(proof: Proof, seen: Seen, of: Snapshot, what: string): void {
  const values = valuesIn(seen, of);
  const found = `${what}, answered ${seen.status}, holds the ${values.join(" and ")}`;
  proof.must("no-values", values.length === 0, found);
}

const TAG_CHARACTERS_MIN = 8;

/** Whether the answer tells the tag: as its ETag, or in the text where the tag is too long to be there by chance. */
function tellsTag(seen: Seen, tag: string): boolean {
  return seen.tag === tag || (tag.length >= TAG_CHARACTERS_MIN && seen.text.includes(tag.slice(1, -1)));
}

type Foreign = {
  seen: Seen;
  method: Method;
  before: Snapshot;
  after: Snapshot | undefined;
  proof: Proof;
  what: string;
};

/** What another tenant may try to send. */
type Sent = {
  readonly what: string;
  readonly lines: (before: Snapshot) => readonly (readonly [string, string])[];
  readonly body?: string;
};

/** Writes by the other tenant; each must be refused and change nothing. */
async function foreignWrites(
  t: Attempt,
  sent: Sent,
  look: (write: Foreign) => void | Promise<void>,
): Promise<void> {
  const { ground, deployment } = t.kit;
  await t.control("PUT");
  const methods: Method[] = ["PUT"];
  if (await t.patchOffered()) methods.push("PATCH");
  if (deployment.deleteOffered !== false && ground.cannotMake === undefined && sent.body === undefined)
    methods.push("DELETE");
  for (const method of methods) {
    // Of its own where one can be made: the other tenant may take it over.
    const customer = await t.ownCustomer();
    const before = await t.state(customer, "read before");
    const what = `${method} by another tenant with ${sent.what}`;
    const proof = await t.writeOnly(method, customer, {
      what: `by another tenant with ${sent.what}`,
      allowed: "refused, nothing changed, no token told",
      ifMatch: sent.lines(before),
      body: sent.body,
      caller: "other-tenant",
    });
    const { seen } = proof;
    if (seen.status === 401) throw new CouldNotRun("the other tenant's credentials are refused with 401");
    const read = await t.get(customer, { query: deployment.stateQuery, purpose: "read back" });
    const gone = read.status === 404 || read.status === 410;
    const after = gone ? undefined : t.snapshot(read);
    const unchanged = after !== undefined && t.same(before, after);
    proof.show(seen, { before: before.seen, after: read, unchanged });
    await look({ seen, method, before, after, proof, what });
  }
}

/** The other tenant may be refused by the environment as well: such an answer is asked for again. */
const REFUSED_MAX = 3;

async function asStranger(t: Attempt, method: Method, options: AskOptions): Promise<Seen> {
  const send = () =>
    t.sendWrite(method, t.kit.ground.missing(), {
      ...options,
      caller: "other-tenant",
      purpose: "control request: a customer that nobody has",
    });
  let seen = await send();
  for (let again = 0; again < REFUSED_MAX && isRefusal(seen); again += 1) seen = await send();
  return seen;
}

const isRefusal = ({ status }: Seen) => status === 401 || status === 403;

/**
 * Whether the answer is the one of a customer that nobody has, and so tells nothing and did nothing: a DELETE may be
 * idempotent, since 404 is said of GET and PUT alone (7). PUT and PATCH are not asked: they might create it.
 */
async function nobodysToo(t: Attempt, { seen, method, before }: Foreign): Promise<boolean> {
  if (method !== "DELETE" || seen.tags.length > 0 || valuesIn(seen, before).length > 0) return false;
  const nobodys = await asStranger(t, method, { ifMatch: before.tag });
  return nobodys.status === seen.status;
}

export const tenants: readonly Rule[] = [
  rule("AUT-08", "Another tenant cannot read the customer", {
    spec: ["4.1 rule 6", "5.2", "4.1 rule 8"],
    reading:
      "No 2xx and no value, with and without `fields`. Where the address is spelled otherwise the status is open, and no value comes either.",
    hurts: "One tenant reads another's customers.",
    needs: ["other-tenant"],
    async check(t) {
      const main = await t.state(t.kit.main, "control request: the main caller");
      for (const query of ["", "?fields=name", "?fields=id,name,email,status"]) {
        const before = await t.get(t.kit.main, { query, purpose: "the owner reads before the stranger" });
        const read = await asOther(t, query);
        read.control({ differs: "the main caller asks", seen: before });
        const { status } = read.seen;
        const what = `another tenant's GET ${query}`;
        read.mustAnswer("refused", "4xx");
        mustHideValues(read, read.seen, main, what);
        // A cache that keys on the URL alone now hands the stranger's refusal to the owner.
        const own = await t.read(query, `${before.status}, as before the stranger's`, {
          what: `GET ${query} by the owner, after another tenant's was answered ${status},`,
        });
        own.mustAnswer("owner-unaffected", before.status, OTHERS_MAY_CAUSE);
      }
      for (const customer of otherPaths(
        t.kit.main,
        t.leavesOut("all but two other spellings of the address"),
      ))
        for (const query of ["", "?fields=name,email"]) {
          const read = await asOther(t, query, customer);
          mustHideValues(read, read.seen, main, `another tenant's GET ${pathEnd(customer)}${query}`);
        }
    },
  }),
  rule("AUT-09", "Another tenant cannot change the customer, even with its current tag", {
    spec: ["5.2", "4.1 rule 6"],
    hurts: "One tenant overwrites or deletes another's customers.",
    needs: ["other-tenant", "write"],
    after: ["IFM-01"],
    async check(t) {
      const current = { what: "the current tag", lines: ({ tag }: Snapshot) => ifMatch(tag) };
      await foreignWrites(t, current, async (write) => {
        const { seen, before, after, proof, what } = write;
        const same = after !== undefined && t.same(before, after);
        const refused = !accepted(seen.status) || (same && (await nobodysToo(t, write)));
        proof.must("refused", refused, `${what} was answered ${seen.status}`);
        const found = () => (after === undefined ? "the customer is gone" : difference(before, after));
        proof.must("unchanged", same, found, OTHERS_MAY_CAUSE);
      });
    },
  }),
  rule("AUT-10", "Another tenant never learns the current tag", {
    spec: ["5.2", "4.1 rule 6"],
    reading:
      "The tenant is checked before the token and the body: no refusal to another tenant carries the token or a value, and none but 403 differs from that of a customer that nobody has.",
    hurts: "A 412 tells a stranger that the customer exists and when it changes.",
    needs: ["other-tenant", "write"],
    after: ["IFM-01"],
    async check(t) {
      const main = await t.state(t.kit.main, "control request: the main caller");
      const read = await asOther(t, "");
      const carries = `the answer ${read.seen.status} to another tenant's GET carries the tag ${main.tag}`;
      if (!accepted(read.seen.status)) read.must("no-tag", !tellsTag(read.seen, main.tag), carries);
      const sent: Sent[] = [
        { what: "a tag never given", lines: () => ifMatch('"kit-never-given"') },
        { what: "no If-Match", lines: () => [] },
        { what: "the current tag and an empty object", lines: ({ tag }) => ifMatch(tag), body: "{}" },
        { what: "the current tag and broken JSON", lines: ({ tag }) => ifMatch(tag), body: "{" },
      ];
      for (const each of sent)
        await foreignWrites(t, each, async ({ seen, method, before, proof, what }) => {
          if (accepted(seen.status)) return;
          const found = `the answer ${seen.status} to ${what} carries the tag ${before.tag}`;
          proof.must("no-tag", !tellsTag(seen, before.tag), found);
          mustHideValues(proof, seen, before, what);
          // With a tag and a good body it might create the customer.
          if (each.lines(before).length > 0 && each.body === undefined) return;
          const nobodys = await asStranger(t, method, { ifMatch: each.lines(before), body: each.body });
          // A failure of the service tells nothing.
          if (seen.status >= 500 || nobodys.status >= 500) return;
          proof.control({ differs: "nobody has the customer", seen: nobodys, refused: true });
          // 403 says no more than that the caller may not; without If-Match both are 428 (4.2, order of checks).
          proof.must(
            "as-nobodys",
            seen.status === nobodys.status || seen.status === 403,
            `${what} was answered ${seen.status}, and to a customer that nobody has ${nobodys.status}: the difference tells that it exists`,
            { level: seen.status === 428 || nobodys.status === 428 ? "MUST" : "SHOULD" },
          );
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
      if (control.status < 400 || control.status > 499)
        throw new CouldNotRun(`an unknown field is answered ${control.status}`, ["FLD-03"]);
      let read = await asOther(t, query);
      for (let again = 0; again < REFUSED_MAX && isRefusal(read.seen); again += 1)
        read = await asOther(t, query);
      read.control({ differs: "the main caller asks", seen: control });
      read.mustAnswer("status", control.status);
    },
  }),
  rule("AUT-12", "Nothing personal is read without credentials", {
    level: "SHOULD",
    spec: ["5.2"],
    reading:
      "A request without credentials has neither role nor tenant. The mechanism is open, hence a warning.",
    hurts: "Personal data reaches someone who may not see it.",
    needs: ["credentials"],
    async check(t) {
      const main = await t.state(t.kit.main, "control request: the main caller");
      const bare = t.kit.main;
      for (const [to, query] of [
        [bare, ""],
        [bare, "?fields=email"],
        ...otherPaths(bare, t.leavesOut("all but two other spellings of the address")).map(
          (each) => [each, ""] as const,
        ),
      ] as const) {
        const what = `GET ${to === bare ? "" : pathEnd(to)}${query} without credentials`;
        const read = await t.read(query, "no personal data", { to, caller: "anonymous", what, body: false });
        mustHideValues(read, read.seen, main, what);
      }
    },
  }),
];
