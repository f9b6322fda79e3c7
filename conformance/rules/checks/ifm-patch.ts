/** If-Match on PATCH. */

import {
  AS_LIST,
  BLANKS,
  EMPTY,
  INEXACT,
  NONE,
  PREVIOUS,
  PREVIOUS_SAME_VALUES,
} from "../../probe/bad-if-match.ts";
import type { Check } from "../../probe/check.ts";
import { currentTagIn412 } from "../../probe/current-tag.ts";
import { note } from "../../probe/evidence.ts";
import { header, refusedWrites } from "../../probe/refusal.ts";
import { memberStandIns, standIns } from "../../probe/stand-ins.ts";
import { accepted, shows } from "../../probe/trial.ts";

export const ifmPatch = {
  "IFM-30": async (t) => {
    // By PUT, so that both values are known and not empty: a PATCH that wipes the rest has something to wipe.
    const before = await t.twin("PUT", t.kit.main);
    const { name } = t.kit.values.next();
    const evidence = t.probe(
      "PATCH of the name with the current tag",
      "2xx; the name is new and the email is as before",
    );
    const seen = await t.write("PATCH", t.kit.main, {
      ifMatch: before.tag,
      values: { name },
      purpose: "probe",
    });
    const after = await t.state(t.kit.main);
    note(evidence, seen, { before: before.seen, after: after.seen });
    const statuses = t.kit.profile.patch.statuses;
    const ok = t.check(
      "accepted",
      statuses?.includes(seen.status) ?? accepted(seen.status),
      `PATCH with the current tag was answered ${seen.status}`,
    );
    if (!ok) return;
    t.check(
      "applied",
      shows(after.fields.name, name),
      () =>
        `name was patched to ${JSON.stringify(name)} and is read back as ${JSON.stringify(after.fields.name)}`,
    );
    t.check(
      "others-kept",
      after.fields.email === before.fields.email,
      () =>
        `email was ${JSON.stringify(before.fields.email)} and after a PATCH of the name is ${JSON.stringify(after.fields.email)}`,
    );
  },
  "IFM-31": (t) => refusedWrites(t, "PATCH", "stale", [PREVIOUS, PREVIOUS_SAME_VALUES], { base: true }),
  "IFM-32": async (t) => {
    await refusedWrites(t, "PATCH", "missing", [NONE], { base: true });
    await refusedWrites(t, "PATCH", "missing", [...standIns(), ...memberStandIns(false)]);
  },
  "IFM-33": (t) => refusedWrites(t, "PATCH", "missing", [EMPTY, ...BLANKS.slice(0, 2)]),
  "IFM-34": (t) => currentTagIn412(t, "PATCH"),
  "IFM-35": async (t) => {
    await refusedWrites(t, "PATCH", "stale", INEXACT, AS_LIST);
    const now = await t.state(t.kit.main, "read before");
    t.probe("PATCH with the current tag between blanks", "accepted like the bare tag", "If-Match:␠␠TAG␠");
    const seen = await t.write("PATCH", t.kit.main, { ifMatch: header(`  ${now.tag} `), purpose: "probe" });
    t.check("padded", accepted(seen.status), `the current tag between blanks was answered ${seen.status}`);
  },
} satisfies Record<`IFM-3${number}`, Check>;
