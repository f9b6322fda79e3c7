/** How far a run can be trusted: what the kit has been shown to catch. Counted from MUTANTS.md, which is generated. */
import { existsSync, readFileSync } from "node:fs";

export function trustSentences(): string[] {
  const path = new URL("../MUTANTS.md", import.meta.url);
  const sentences = [
    "A rule passes only if its control request succeeded and the customer, read back, was as it should be.",
    "What cannot be seen from outside (what is fetched from storage, how telemetry is broken down) is not tested; docs/coverage.md lists it sentence by sentence.",
  ];
  if (!existsSync(path)) return sentences;
  const claim = /^> (The kit was run against .*)$/m.exec(readFileSync(path, "utf8"))?.[1];
  return claim === undefined ? sentences : [claim, ...sentences];
}
