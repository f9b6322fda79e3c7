/** If-Match on DELETE, always on customers made for it. */

import { AS_LIST, BLANKS, EMPTY, INEXACT, NONE, PREVIOUS } from "../../probe/bad-if-match.ts";
import type { Check } from "../../probe/check.ts";
import { note } from "../../probe/evidence.ts";
import { CouldNotRun } from "../../probe/outcome-signal.ts";
import { header, refusedDeletes, updatedCustomer } from "../../probe/refusal.ts";
import { standIns } from "../../probe/stand-ins.ts";
import { accepted } from "../../probe/trial.ts";

const ACCEPTED_READS_MAX = 20;
const ACCEPTED_WAIT_MS = 100;

export const ifmDelete = {
  "IFM-40": async (t) => {
    const customer = await t.kit.ground.make();
    const before = await t.state(customer, "read before");
    const evidence = t.probe("DELETE with the current tag", "2xx, and it takes effect");
    const seen = await t.write("DELETE", customer, { ifMatch: before.tag, purpose: "probe" });
    let after = await t.get(customer, { purpose: "read back" });
    // 202 promises that it will take effect (RFC 9110 15.3.3), and not when.
    for (let wait = 0; wait < ACCEPTED_READS_MAX && seen.status === 202 && after.status === 200; wait += 1) {
      await Bun.sleep(ACCEPTED_WAIT_MS);
      after = await t.get(customer, { purpose: "read back" });
    }
    note(evidence, seen, { before: before.seen, after });
    const statuses = t.kit.profile.delete.statuses;
    if (
      !t.check(
        "accepted",
        statuses?.includes(seen.status) ?? accepted(seen.status),
        `DELETE with the current tag was answered ${seen.status}`,
      )
    )
      return;
    t.check(
      "effect",
      after.status !== 200 || after.tag !== before.tag,
      `after an accepted DELETE a read still answers 200 with the same tag ${before.tag}`,
    );
  },
  "IFM-41": (t) => refusedDeletes(t, "stale", [PREVIOUS], { base: true }),
  "IFM-42": async (t) => {
    await refusedDeletes(t, "missing", [NONE], { base: true });
    await refusedDeletes(t, "missing", standIns());
  },
  "IFM-43": (t) => refusedDeletes(t, "missing", [EMPTY, ...BLANKS.slice(0, 2)]),
  "IFM-44": async (t) => {
    const { customer, former, now } = await updatedCustomer(t);
    const evidence = t.probe("DELETE with a stale tag", `412 with ETag ${now.tag}`);
    const seen = await t.write("DELETE", customer, { ifMatch: former, purpose: "probe" });
    note(evidence, seen);
    if (seen.status !== 412)
      throw new CouldNotRun(`a stale DELETE was answered ${seen.status}, not 412; see IFM-41`);
    if (
      seen.tag !== undefined &&
      seen.tag !== now.tag &&
      (await t.state(customer, "read again")).tag === seen.tag
    )
      throw new CouldNotRun("the read before showed an older tag than the 412; see ENV-04");
    if (t.check("etag", seen.tag !== undefined, "the 412 of DELETE carries no ETag"))
      t.check(
        "etag-current",
        seen.tag === now.tag,
        `the 412 of DELETE carries ${seen.tag}; the current tag is ${now.tag}`,
      );
  },
  "IFM-45": async (t) => {
    await refusedDeletes(t, "stale", INEXACT, AS_LIST);
    const customer = await t.kit.ground.make();
    const now = await t.state(customer, "read before");
    t.probe("DELETE with the current tag between blanks", "accepted like the bare tag", "If-Match:␠␠TAG␠");
    const seen = await t.write("DELETE", customer, { ifMatch: header(`  ${now.tag} `), purpose: "probe" });
    t.check("padded", accepted(seen.status), `the current tag between blanks was answered ${seen.status}`);
  },
} satisfies Record<`IFM-4${number}`, Check>;
