/** FLD: fields of request bodies. */
import type { Customer } from "../../fixtures/ground.ts";
import { CouldNotRun, OTHERS_MAY_CAUSE } from "../../http/outcome-signal.ts";
import { isClientError } from "../../http/status.ts";
import type { Written } from "../../probe/answered.ts";
import type { Attempt } from "../../probe/attempt.ts";
import { isAnyIdRead } from "../../probe/callers/existence.ts";
import { NEEDS } from "../../probe/refusals/refused.ts";
import { opaque } from "../../probe/requests/tag-forms.ts";
import { type Rule, rule } from "../../probe/rule.ts";
import { change as changeOf, difference, WRITABLE } from "../../probe/snapshot.ts";

type Member = Readonly<Record<string, unknown>>;

/** A write with the current tag whose body has further or other members; `undefined` takes one out. */
async function change(
  t: Attempt,
  method: "PUT" | "PATCH",
  what: string,
  members: Member,
  allowed: string,
  to?: Customer,
): Promise<Written> {
  const { deployment, values } = t.kit;
  const good: Member = method === "PUT" ? JSON.parse(deployment.putBody(values.next())) : {};
  const others = Object.entries(good).filter(([name]) => !(name in members));
  const body = JSON.stringify({ ...Object.fromEntries(others), ...members });
  return await t.write(method, { what, body, allowed, to });
}

/** PATCH too, where it takes a body that is an object of members. */
async function methodsOf(t: Attempt): Promise<readonly ("PUT" | "PATCH")[]> {
  return (await t.patchOffered()) && t.kit.deployment.patchesMembers ? ["PUT", "PATCH"] : ["PUT"];
}

function requires(id: Rule["id"], field: "name" | "email", spec: "2.3 Name" | "2.3 Email"): Rule {
  return rule(id, `PUT needs ${field === "name" ? "Name" : "Email"}`, {
    spec: [spec, "4.2 body"],
    reading: "A body without it, or with null, is refused by some 4xx and changes nothing.",
    hurts: "A replacement that forgot a field wipes it or passes for a partial update.",
    needs: ["write"],
    after: ["IFM-01"],
    async check(t) {
      await t.control("PUT");
      const member = t.kit.deployment.bodyNames[field];
      for (const [what, value] of [
        [`no ${member}`, undefined],
        [`${member} null`, null],
      ] as const) {
        const put = await change(t, "PUT", what, { [member]: value }, "some 4xx, nothing changed");
        put.mustAnswer("refused", "4xx");
        put.mustNotChange();
      }
    },
  });
}

/** How long a job may take to settle the status after a write. */
const SETTLES_MS = 1000;

/** Further than this run will count. */
const FAR = 1_000_000;
/** What a service that takes it may add for the write itself. */
const NEAR = 10;

/** An index, from which a projection may come, may keep it otherwise. */
const FOLDED = true;

/** As encoders write it that send nothing but ASCII. */
const escaped = (body: string) =>
  body.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
/** The order of members says nothing (RFC 8259 1). */
const turned = (body: string) =>
  JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(body)).reverse()));

/** What is empty comes first: the values after it fill it again. */
const VALUES: readonly (readonly [what: string, value: string, folded?: boolean])[] = [
  ["nothing", ""],
  ["accents", "Ren\u00e9e \u00c5sl\u00f6f", FOLDED],
  ["an apostrophe", "Niamh O'Brien"],
  ["an ampersand", "Bell & Sons"],
  ["other scripts", "\u0416\u0430\u043d \u5f20\u4f1f"],
  ["an emoji", "Kit \u{1f600}"],
  ["a plus and a percent sign", "Kit+Co 100%25"],
  ["double quotes", 'Kit "Co" AG', FOLDED],
  ["a backslash", "Kit\\Co"],
  ["angle brackets", "Kit <Co> AG"],
  ["60 characters", `Kit ${"abcdefg ".repeat(7)}`.trim()],
  ["300 characters", `Kit ${"abcdefg ".repeat(37)}`.trim()],
  ["a character U+0000", "Kit\0Co"],
  ["small letters alone", "kit von co"],
  ["the same letters as capitals", "KIT VON CO"],
  ["capitals alone", "KIT CO AG", FOLDED],
  ["a dollar sign", "Kit $1 US$"],
  ["an equals sign first", "=Kit Co"],
  ["a line break", "Kit\nCo"],
  ["braces", "Kit {{name}} Co"],
  ["a joined emoji", "Kit \u{1f469}\u200d\u{1f4bb}"],
  ["zeros first", "0042"],
  ["the digit zero", "0"],
  ["the form of a number", "12e5"],
  ["the word null", "null"],
  ["the word true", "true"],
  ["the form of a date", "2026-01-31"],
  ["the form of a list", "[1, 2]"],
  ["curly quotes and a long dash", "Kit\u2019s \u201cCo\u201d \u2013 AG"],
  ["an entity of HTML", "Bell &amp; Sons"],
  ["a comment of SQL", "Kit -- Co; AG"],
  ["1,000 characters", `Kit ${"abcdefg ".repeat(125)}`.trim()],
  ["5,000 characters", `Kit ${"abcdefg ".repeat(625)}`.trim()],
  ["two blanks", "Kit  Co", FOLDED],
  ["a tab", "Kit\tCo"],
];

/** Made of a fresh one, since a deployment may want each customer to have another. */
const EMAILS: readonly (readonly [what: string, email: (fresh: string) => string, folded?: boolean])[] = [
  ["nothing", () => ""],
  ["capitals", (fresh) => fresh.replace(/^kit/, "Kit.McCo"), FOLDED],
  ["a plus sign", (fresh) => fresh.replace("@", "+co@")],
  ["an apostrophe", (fresh) => `o'${fresh}`],
  ["an equals and a dollar sign", (fresh) => `co=1$${fresh}`],
  ["letters beyond ASCII", (fresh) => `ren\u00e9.${fresh}`],
  ["200 characters", (fresh) => fresh.replace("@", `@${`${"abcdefghi".repeat(4)}.`.repeat(4)}`)],
];

/** A deployment may trim a value, normalize its Unicode form, and fold the case of an email. */
const comparable = (field: "name" | "email", value: unknown) => {
  const text = String(value).normalize("NFKC").trim();
  return field === "email" ? text.toLowerCase() : text;
};

/** With one blank for each run of blanks and tabs. */
const oneLine = (value: unknown) =>
  String(value)
    .normalize("NFKC")
    .trim()
    .replace(/[ \t]+/g, " ");

type Stored = {
  readonly field: "name" | "email";
  readonly what: string;
  readonly value: string;
  readonly padBytes?: number;
  readonly folded?: boolean;
  /** Another text of the same body. */
  readonly retold?: (body: string) => string;
};

/** Values on which something that a deployment is made of may stumble. */
function storable(t: Attempt): Stored[] {
  const gently = t.gentlyLeavesOut(
    "names with angle brackets, braces, U+0000, two dashes or an equals sign first",
  );
  const names = gently ? VALUES.filter(([, value]) => !/[<\0{]|^=|--/.test(value)) : VALUES;
  return [
    ...names.map(
      ([what, value, folded = false]): Stored => ({
        field: "name",
        what: `${what} in the name`,
        value,
        folded,
      }),
    ),
    ...EMAILS.map(([what, of, folded = false]): Stored => {
      const { email } = t.kit.values.next();
      return { field: "email", what: `${what} in the email`, value: of(email), folded };
    }),
    { field: "name", what: "a body of 9,000 bytes", value: t.kit.values.next().name, padBytes: 9000 },
    { field: "name", what: "escapes of JSON in the name", value: "Ren\u00e9e \u{1f600}", retold: escaped },
    { field: "name", what: "the email first", value: t.kit.values.next().name, retold: turned },
  ];
}

/** A body that names the id of another customer: a statement that takes the id from there writes that one. */
async function leavesTheOther(t: Attempt, method: "PUT" | "PATCH"): Promise<void> {
  const { ground, values, deployment } = t.kit;
  const [to, other] = [await ground.make(), await ground.make()];
  const { id: member, name } = deployment.bodyNames;
  const untouched = await t.state(other, "read the customer whose id is sent");
  const allowed = "a 4xx, or the id ignored; the other customer as before";
  const plain = await change(t, method, "no id in the body", { [name]: values.next().name }, "accepted", to);
  const before = await t.state(other, "read the customer whose id is sent");
  if (!t.same(untouched, before))
    throw new CouldNotRun(
      `${method} without an id in the body changes another customer as well`,
      ["ENV-06"],
      OTHERS_MAY_CAUSE,
    );
  const sent = values.next().name;
  const what = "the id of another customer in the body";
  const write = await change(t, method, what, { [name]: sent, [member]: other.id }, allowed, to);
  const seen = await t.get(other, { query: deployment.stateQuery, purpose: "read that customer" });
  const after = t.snapshotIn(seen);
  write.show(write.seen, { before: before.seen, after: seen });
  write.control({ differs: "the body names no id", seen: plain.seen });
  const then = () => (after === undefined ? `is answered ${seen.status}` : difference(before, after));
  // Nobody else writes the name that was sent here.
  t.decisive ||= after?.fields.name === sent;
  write.must(
    "other-kept",
    after !== undefined && t.same(before, after),
    () => `after ${method} with ${what} that customer, ${other.id}: ${then()}`,
    OTHERS_MAY_CAUSE,
  );
}

export const bodies: readonly Rule[] = [
  rule("FLD-15", "Id is not changeable by an update", {
    spec: ["2.1 Id"],
    reading:
      "A body that names another id is refused or the id is ignored; the customer keeps its own, and one that has the named id is left alone.",
    hurts: "One customer takes the place of another.",
    needs: ["write", "create"],
    after: ["IFM-01", "IFM-30"],
    async check(t) {
      await t.control("PUT");
      for (const method of await methodsOf(t)) {
        // On a customer of its own: one that moves would be missed by the rules that come later.
        const to = await t.kit.ground.make();
        const other = t.kit.ground.missing();
        const member = t.kit.deployment.bodyNames.id;
        const what = "another id in the body";
        const write = await change(t, method, what, { [member]: other.id }, "a 4xx, or the id ignored", to);
        const { before, after, seen } = write;
        const now = after?.fields.id;
        if (before.fields.id !== undefined)
          write.must(
            "id-kept",
            Bun.deepEquals(now, before.fields.id),
            `after ${method} the ${changeOf("id", before.fields.id, now)}`,
          );
        const answered = isClientError(seen.status) || write.accepted;
        write.must("answer", answered, `${method} with another id in the body was answered ${seen.status}`);
        const moved = await t.get(other, { purpose: "read the other id" });
        const here = moved.status === 200 && !(await isAnyIdRead(t));
        if (here) t.kit.ground.adopt(other);
        write.must("not-moved", !here, `a customer now answers at the id in the body, ${other.id}`);
        await leavesTheOther(t, method);
      }
    },
  }),
  requires("FLD-16", "name", "2.3 Name"),
  requires("FLD-17", "email", "2.3 Email"),
  rule("FLD-18", "Name and Email stay strings", {
    spec: ["2.1 Name", "2.1 Email", "4.2 body"],
    reading:
      "A number, a list, an object, or null in a PATCH, is refused, and a good member beside it is not applied (RFC 5789 2); or it is at least a string when read back.",
    hurts: "Typed clients can no longer read the customer.",
    needs: ["write"],
    after: ["IFM-01", "IFM-30"],
    async check(t) {
      await t.control("PUT");
      for (const method of await methodsOf(t)) {
        for (const field of WRITABLE) {
          const { bodyNames } = t.kit.deployment;
          const [member, other] = [bodyNames[field], field === "name" ? "email" : "name"] as const;
          const bad = (value: unknown) =>
            [`${member} ${JSON.stringify(value)}`, { [member]: value }] as const;
          const rows: (readonly [what: string, members: Member])[] = [42, true, ["a"], { a: "b" }].map(bad);
          if (method === "PATCH") {
            // Of PUT, null is asked by FLD-16 and FLD-17.
            rows.push(bad(null));
            const good = { [bodyNames[other]]: t.kit.values.next()[other] };
            rows.push([`a good ${other} before ${member} 42`, { ...good, [member]: 42 }]);
          }
          for (const [what, members] of rows) {
            const allowed = "some 4xx and nothing changed, or read back as a string";
            const write = await change(t, method, what, members, allowed);
            const { status } = write.seen;
            if (isClientError(status)) write.mustNotChange();
            const shown = write.after?.fields[field];
            write.should("no-5xx", status < 500, `${method} with ${what} was answered ${status}`);
            const found = `after ${method} with ${what} the ${field} reads ${JSON.stringify(shown)}, no string`;
            write.must("string", typeof shown === "string", found);
          }
        }
      }
    },
  }),
  rule("FLD-19", "A client cannot set the row version", {
    spec: ["2.1 RowVersion", "2.4.3"],
    reading: "A RowVersion or ETag in a body is refused or ignored.",
    hurts: "A client forges the version that protects everybody else.",
    needs: ["write"],
    after: ["IFM-01", "IFM-30", "ETG-08", "ETG-15"],
    async check(t) {
      const control = await t.control("PUT");
      const former = opaque(control.former);
      // Where tags come back by themselves, one that is back proves nothing.
      const repeats = t.kit.doubts.has("tags repeat") || t.kit.doubts.has("tag stays");
      const counted = /^\d{1,15}$/.test(former);
      // A service may count up or down.
      const up = Number(opaque(control.tag)) > Number(former);
      const members = ["RowVersion", "rowVersion", "row_version", "version", "etag"];
      const sets = t.leavesOut("each name of the row version in a body of its own")
        ? [members]
        : members.map((member) => [member]);
      const forge = async (
        method: "PUT" | "PATCH",
        names: readonly string[],
        value: unknown,
        remark = "",
      ) => {
        const what = `${names.join(", ")} ${JSON.stringify(value)}${remark} in the body`;
        // With a new name, since a PATCH that changes nothing may leave the tag as it is.
        const { deployment, values } = t.kit;
        const body = {
          [deployment.bodyNames.name]: values.next().name,
          ...Object.fromEntries(names.map((name) => [name, value])),
        };
        const write = await change(t, method, what, body, "a 4xx, or it is ignored");
        return { write, tag: write.after?.tag ?? "", found: `after ${method} with ${what} the tag is` };
      };
      for (const method of await methodsOf(t)) {
        // Where the tag stays anyway, two writes with one tag prove nothing.
        const ordinary = await t.control(method);
        const stays = ordinary.former === ordinary.tag;
        for (const names of sets) {
          const text = await forge(method, names, "kit-forged");
          text.write.must("not-set", !text.tag.includes("kit-forged"), `${text.found} ${text.tag}`);
          // A typed version column takes a number and no text. The same one twice makes one tag of two writes.
          const number = counted ? Number(former) + FAR : FAR;
          const [first, second] = [await forge(method, names, number), await forge(method, names, number)];
          // A tag that is a time passes it by.
          const reached = counted && Math.abs(Number(opaque(second.tag)) - number) <= NEAR;
          const same = !stays && second.write.accepted && first.tag === second.tag;
          second.write.must(
            "not-set",
            repeats || !(reached || same),
            `${second.found} ${second.tag}${same ? ", as after the same write before it" : ""}`,
          );
          for (const value of [former, ...(counted ? [Number(former)] : [])]) {
            const { write, tag, found } = await forge(method, names, value, ", a former one,");
            const moved = Number(opaque(tag)) - Number(opaque(control.tag));
            const back =
              control.former !== control.tag &&
              (tag === control.former || (counted && (up ? moved < 0 : moved > 0)));
            write.must("not-reset", repeats || !back, `${found} back at ${tag}`);
          }
        }
      }
    },
  }),
  rule("FLD-20", "Values are stored as they were sent", {
    spec: ["2.1 Name", "3 accepted"],
    reading:
      "Nothing at all, other scripts, signs that some syntax takes for its own, words of some syntax, another letter case, long values: a deployment may refuse such a name or email by a 4xx, trim it, normalize its Unicode form, or fold the letter case of an email; it must not store another. A projection shows the same as the whole read.",
    hurts: "Names of customers are mangled, and every later update writes the damage back.",
    needs: NEEDS.PUT,
    after: ["IFM-01", "IFM-30"],
    async check(t) {
      const methods = await methodsOf(t);
      const [first = "PUT"] = methods;
      const short = methods.length > 1 && t.leavesOut("such values in PATCH");
      const few = t.leavesOut("projections of most such values");
      const { deployment } = t.kit;
      // What no projection shows is FLD-01's to blame.
      const projects = new Set<Stored["field"]>();
      for (const field of WRITABLE) {
        const seen = await t.get(t.kit.main, { query: `?fields=${field}`, purpose: "a projection" });
        if (typeof t.fieldsOf(seen)[field] === "string") projects.add(field);
      }
      for (const method of short ? [first] : methods) {
        const control = await t.control(method);
        for (const { field, what, value, padBytes, folded, retold } of storable(t)) {
          const values = { ...(method === "PUT" ? t.kit.values.next() : {}), [field]: value };
          const allowed = "a 4xx, or read back as sent";
          const plain =
            method === "PUT"
              ? deployment.putBody({ ...t.kit.values.next(), ...values })
              : deployment.patchBody(values).body;
          const body = retold?.(plain);
          const write = await t.write(method, { values, body, padBytes, what, allowed });
          write.control({ differs: "name and email are of plain letters", seen: control.written.seen });
          const { seen } = write;
          const found = `${method} with ${what} was answered ${seen.status}`;
          write.should("answered", write.accepted || isClientError(seen.status), found);
          if (!write.accepted) continue;
          const shown = write.now.fields[field];
          const isAsSent = typeof shown === "string" && comparable(field, shown) === comparable(field, value);
          const damage = `the ${field} was written as ${JSON.stringify(value)} and is read back as ${JSON.stringify(shown)}`;
          // What a browser would show alike is a warning.
          if (!isAsSent && typeof shown === "string" && oneLine(shown) === oneLine(value))
            write.should("blanks-as-sent", false, damage);
          else write.must("as-sent", isAsSent, damage, OTHERS_MAY_CAUSE);
          if (method !== first || !projects.has(field) || (few && !folded)) continue;
          const read = await t.get(t.kit.main, { query: `?fields=${field}`, purpose: "the same, projected" });
          if (read.status !== 200 || read.tag !== write.now.tag) continue;
          const projected = t.fieldsOf(read)[field];
          const other = `?fields=${field} shows ${JSON.stringify(projected)}, the read without it ${JSON.stringify(shown)}`;
          const alike = Bun.deepEquals(projected, shown);
          write.must("projected-alike", alike, other, OTHERS_MAY_CAUSE);
        }
      }
    },
  }),
  rule("FLD-21", "PUT and PATCH leave the status as it was", {
    level: "SHOULD",
    spec: ["4.2 body", "2.1 Status"],
    reading:
      "PUT takes Name and Email; a status in its body is refused or ignored. How the status moves is not shown, so only a write that changes neither of them is looked at, and a job may settle the status afterwards.",
    hurts: "An update throws a customer back to the status of a new one, or lets a client choose it.",
    needs: ["write", "create"],
    after: ["IFM-01"],
    async check(t) {
      const { ground, deployment } = t.kit;
      const to = await ground.make();
      const status = () => t.status(to, "read");
      const before = await status();
      if (before === undefined) throw new CouldNotRun("a read shows no status", ["FLD-01"]);
      const rows: ["PUT" | "PATCH", string, Member][] = [
        ["PUT", "the values that are stored", {}],
        ["PUT", "the values that are stored, and a status", { [deployment.bodyNames.status]: "KitOther" }],
      ];
      if (await t.patchOffered()) rows.push(["PATCH", "the name that is stored", {}]);
      for (const [method, what, members] of rows) {
        const put = await t.write(method, {
          to,
          values: "as stored",
          members,
          what,
          allowed: "the status stays",
        });
        let now = await status();
        for (let wait = 0; !Bun.deepEquals(now, before) && wait < SETTLES_MS; wait += 100) {
          await t.kit.wire.rest(100);
          now = await status();
        }
        const found = `after a ${method} of ${what} the status is ${JSON.stringify(now)}; before it was ${JSON.stringify(before)}`;
        put.must("status-kept", !put.accepted || Bun.deepEquals(now, before), found, OTHERS_MAY_CAUSE);
      }
    },
  }),
];
