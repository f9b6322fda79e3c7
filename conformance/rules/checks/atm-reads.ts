/** ATM-06: readers among a chain of writes. */

import type { Attempt } from "../../probe/attempt.ts";
import { CouldNotRun } from "../../probe/outcome-signal.ts";
import { accepted, shows } from "../../probe/trial.ts";
import { registryFields } from "../../target/names.ts";

const READERS = 4;
const READS_MAX = 400;
const READS_QUICK_MAX = 40;

export async function readsAmongWrites(t: Attempt): Promise<void> {
  const { deployment, main } = t.kit;
  const versions = new Map<string, { name: unknown; email: unknown }>();
  const reads: { n: number; tag: string; name: unknown; email: unknown }[] = [];
  let writing = true;
  let sent = 0;
  const first = await t.state(main, "read before");
  versions.set(first.tag, { name: first.fields.name, email: first.fields.email });

  const reader = async () => {
    while (writing && sent < (t.quick ? READS_QUICK_MAX : READS_MAX)) {
      sent += 1;
      const seen = await t.get(main, { query: deployment.stateQuery, purpose: "read among writes" });
      if (seen.status !== 200 || seen.tag === undefined || seen.object === undefined) continue;
      const { name, email } = registryFields(seen.object, deployment.names);
      reads.push({ n: seen.exchange.n, tag: seen.tag, name, email });
    }
  };
  const writer = async () => {
    try {
      let { tag } = first;
      for (let write = 0; write < (t.quick ? 10 : 40); write += 1) {
        const values = t.kit.values.next();
        const seen = await t.rawWrite("PUT", main, { ifMatch: tag, values, purpose: "chain of writes" });
        if (!accepted(seen.status))
          throw new CouldNotRun(`PUT with the current tag was answered ${seen.status}; see IFM-01`);
        tag = seen.tag ?? (await t.state(main)).tag;
        // A tag that stays or comes back is the ETG rules' matter; it cannot tell versions apart here.
        if (versions.has(tag))
          throw new CouldNotRun("the tag does not tell versions apart; see ETG-08 and ETG-15");
        versions.set(tag, values);
      }
    } finally {
      writing = false;
    }
  };
  await Promise.all([writer(), ...Array.from({ length: READERS }, reader)]);

  let known = 0;
  for (const { n, tag, name, email } of reads) {
    const version = versions.get(tag);
    if (version === undefined) continue;
    known += 1;
    const evidence = t.probe("GET while others write", `with ${tag}: ${JSON.stringify(version)}`);
    evidence.came = `with ${tag}: ${JSON.stringify({ name, email })}`;
    evidence.sent = n;
    t.check(
      "together",
      shows(name, String(version.name)) && shows(email, String(version.email)),
      `a read showed the tag ${tag} with ${JSON.stringify({ name, email })}; that version is ${JSON.stringify(version)}`,
    );
  }
  if (known === 0) throw new CouldNotRun("no read among the writes showed a known tag");
  t.note = `; ${reads.length} reads among ${versions.size - 1} writes`;
}
