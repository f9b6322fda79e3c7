/** If-Match on PUT; PATCH and DELETE stand in files of their own. */

import {
  AFFIXES,
  AS_LIST,
  BLANKS,
  CASES,
  EMPTY,
  LISTS,
  NONE,
  PREVIOUS,
  PREVIOUS_SAME_VALUES,
  QUOTED_STAR,
  SPELLINGS,
  STAR,
  TWO_LINES,
  UNQUOTED,
  WEAK,
  WEAK_SMALL,
} from "../../probe/bad-if-match.ts";
import type { Check } from "../../probe/check.ts";
import { currentTagIn412 } from "../../probe/current-tag.ts";
import { note } from "../../probe/evidence.ts";
import { CouldNotRun, Inconclusive } from "../../probe/outcome-signal.ts";
import { type Bad, bad, formsOf, header, refusedWrites, updatedCustomer } from "../../probe/refusal.ts";
import { memberStandIns, standIns } from "../../probe/stand-ins.ts";
import { quoted, successors } from "../../probe/tag-forms.ts";
import { accepted, shows } from "../../probe/trial.ts";
import type { ifm as rules } from "../if-match.ts";
import { ifmDelete } from "./ifm-delete.ts";
import { ifmPatch } from "./ifm-patch.ts";

const HOSTILE: readonly Bad[] = [
  `"' OR '1'='1"`,
  `"x' OR 1=1 --"`,
  '"%"',
  '".*"',
  '"[^x]*"',
  '"null"',
  "null",
  "undefined",
  '""',
  '"0"',
  '"-1"',
  '"true"',
  '"../../etc/passwd"',
  `"\${7*7}"`,
  quoted("a".repeat(2000)),
].map((text) => bad(`the text ${text.slice(0, 24)} as a tag`, () => text));

/** A firewall before the service may stop such a request, or find its header too large. */
const STOPPED_ON_THE_WAY = { allowed: [403, 431] } as const;

function formers(tags: readonly string[]): Bad[] {
  return tags.map((former, index) =>
    bad(`the former tag of ${tags.length - index} writes ago`, () => former),
  );
}

export const ifm = {
  "IFM-01": async (t) => {
    const before = await t.state(t.kit.main, "read before");
    const values = t.kit.values.next();
    const evidence = t.probe("PUT with the current tag", "204 or 200, and the new values are read back");
    const seen = await t.write("PUT", t.kit.main, { ifMatch: before.tag, values, purpose: "probe" });
    const after = await t.state(t.kit.main);
    note(evidence, seen, { before: before.seen, after: after.seen });
    // Where the values were written all the same, the 412 is no word on a read (a proxy that repeats writes, say).
    const applied = shows(after.fields.name, values.name);
    if (
      !applied &&
      seen.status === 412 &&
      seen.tag !== undefined &&
      seen.tag !== before.tag &&
      after.tag === seen.tag
    )
      throw new CouldNotRun("the read before showed an older tag than the 412; see ENV-04");
    const ok = t.check(
      "accepted",
      accepted(seen.status),
      `PUT with the current tag ${before.tag} was answered ${seen.status}`,
    );
    if (!ok) return;
    if (!t.kit.main.made && after.fields.name !== values.name && after.fields.name !== before.fields.name)
      throw new Inconclusive("somebody else wrote this customer meanwhile");
    for (const field of ["name", "email"] as const)
      t.check(
        `applied-${field}`,
        shows(after.fields[field], values[field]),
        () =>
          `${field} was written as ${JSON.stringify(values[field])} and is read back as ${JSON.stringify(after.fields[field])}: not applied`,
      );
    for (const name of ["if-match", "IF-MATCH"]) {
      const now = await t.state(t.kit.main, "read before");
      const probe = t.probe(
        `PUT with the current tag, the header spelled ${name}`,
        "accepted: header names have no case",
      );
      const spelled = await t.write("PUT", t.kit.main, { ifMatch: [[name, now.tag]], purpose: "probe" });
      note(probe, spelled);
      t.check(
        "name-case",
        accepted(spelled.status),
        `PUT with ${name}: ${now.tag} was answered ${spelled.status}; header names have no case`,
      );
    }
  },
  "IFM-02": async (t) => {
    const before = await t.state(t.kit.main, "read before");
    const evidence = t.probe("PUT with the current tag", "204 without a body, or 200 with one");
    // On a raw socket, since client libraries hide bytes behind a 204.
    const seen = await t.write("PUT", t.kit.main, { ifMatch: before.tag, purpose: "probe", via: "socket" });
    note(evidence, seen);
    if (!accepted(seen.status))
      throw new CouldNotRun(`PUT with the current tag was answered ${seen.status}; see IFM-01`);
    const { status, text } = seen;
    t.check(
      "status",
      status === 204 || status === 200,
      `an accepted PUT was answered ${status}, neither 204 nor 200`,
    );
    if (status === 204)
      t.check("no-body", text === "", `204 came with a body: ${JSON.stringify(text.slice(0, 60))}`);
    if (status === 200)
      t.check("body", text !== "", "200 came without a body; without one the status is 204", "SHOULD");
  },
  "IFM-03": (t) => refusedWrites(t, "PUT", "stale", [PREVIOUS, PREVIOUS_SAME_VALUES], { base: true }),
  "IFM-04": (t) => refusedWrites(t, "PUT", "missing", [NONE], { base: true }),
  "IFM-05": (t) => refusedWrites(t, "PUT", "missing", [EMPTY]),
  "IFM-06": (t) => refusedWrites(t, "PUT", "missing", BLANKS),
  "IFM-07": (t) => currentTagIn412(t, "PUT"),
  "IFM-08": async (t) => {
    for (const [before, after] of [
      ["  ", ""],
      ["", "  "],
      ["\t", " \t"],
    ] as const) {
      const twin = await t.twin("PUT", t.kit.main);
      const evidence = t.probe(
        "PUT with the current tag between blanks",
        "accepted like the bare tag",
        `If-Match:${before}TAG${after}`.replaceAll(" ", "␠").replaceAll("\t", "⇥"),
      );
      const seen = await t.write("PUT", t.kit.main, {
        ifMatch: header(`${before}${twin.tag}${after}`),
        purpose: "probe",
      });
      note(evidence, seen, {
        twin: { differs: "no blanks", n: twin.twin.exchange.n, status: twin.twin.status, ok: true },
      });
      t.check(
        "accepted",
        accepted(seen.status),
        `the current tag between blanks was answered ${seen.status}`,
      );
    }
  },
  "IFM-09": (t) => refusedWrites(t, "PUT", "stale", [WEAK, WEAK_SMALL]),
  "IFM-10": (t) => refusedWrites(t, "PUT", "stale", UNQUOTED),
  "IFM-11": (t) => refusedWrites(t, "PUT", "stale", CASES),
  "IFM-12": (t) => refusedWrites(t, "PUT", "stale", [STAR, QUOTED_STAR]),
  "IFM-13": (t) => refusedWrites(t, "PUT", "stale", LISTS, AS_LIST),
  "IFM-14": (t) => refusedWrites(t, "PUT", "stale", TWO_LINES, AS_LIST),
  "IFM-15": (t) => refusedWrites(t, "PUT", "stale", AFFIXES),
  "IFM-16": (t) => refusedWrites(t, "PUT", "stale", SPELLINGS),
  "IFM-17": (t) => refusedWrites(t, "PUT", "stale", formsOf(successors, 5)),
  "IFM-18": async (t) => {
    // A customer of its own has its first tag still to be remembered; where none can be made, the oldest known one.
    const { ground, main } = t.kit;
    const customer = ground.cannotMake === undefined ? await ground.make() : main;
    const tags: string[] = [];
    for (let write = 0; write < (t.quick ? 3 : 6); write += 1)
      tags.push((await t.twin("PUT", customer)).former);
    await refusedWrites(t, "PUT", "stale", formers(tags), { customer });
  },
  "IFM-19": async (t) => {
    const other = await t.second();
    const main = await t.state(t.kit.main, "read before");
    let foreign = await t.state(other, "read the other customer");
    // Counted tokens of two customers may be equal: write the other until its tag is one of its own.
    for (let write = 0; write < 3 && foreign.tag === main.tag; write += 1) {
      const put = await t.write("PUT", other, {
        ifMatch: foreign.tag,
        purpose: "move the other customer's tag",
      });
      if (!accepted(put.status))
        throw new CouldNotRun(`PUT with the current tag was answered ${put.status}; see IFM-01`);
      foreign = await t.state(other, "read the other customer");
    }
    await refusedWrites(t, "PUT", "stale", [bad("another customer's current tag", () => foreign.tag)]);
  },
  "IFM-20": (t) => refusedWrites(t, "PUT", "stale", HOSTILE, STOPPED_ON_THE_WAY),
  "IFM-21": async (t) => {
    await refusedWrites(t, "PUT", "missing", [...standIns(), ...memberStandIns(!t.quick)]);
  },
  "IFM-22": async (t) => {
    // On a customer of its own where one can be made: earlier conflicts may have locked the main one.
    const made = t.kit.ground.cannotMake === undefined;
    const { customer, former } = made
      ? await updatedCustomer(t)
      : { customer: t.kit.main, former: (await t.twin("PUT", t.kit.main)).former };
    const refused = await t.write("PUT", customer, { ifMatch: former, purpose: "conflict" });
    if (accepted(refused.status)) throw new CouldNotRun("a stale PUT was accepted; see IFM-03");
    const fresh = await t.state(customer, "read again");
    const evidence = t.probe(
      "PUT after a conflict, with the tag just read",
      "accepted: nothing stays locked",
    );
    const seen = await t.write("PUT", customer, { ifMatch: fresh.tag, purpose: "probe" });
    note(evidence, seen);
    t.check(
      "accepted",
      accepted(seen.status),
      `after a conflict the write with the fresh tag ${fresh.tag} was answered ${seen.status}`,
    );
  },

  ...ifmPatch,
  ...ifmDelete,
} satisfies Record<(typeof rules)[number]["id"], Check>;
