/** How far a run can be trusted: what the kit has been shown to catch, as the self-test counted it. */
import proven from "./proven.json" with { type: "json" };

/** What the self-test ran the kit against; `fallible` assertions are those that some fault makes fail. */
export type Proven = typeof proven;

export function claim(counts: Proven): string {
  const { faults, caught, families, variants, environments, targets, assertions, fallible } = counts;
  return `The kit was run against ${faults} faulty services and caught ${caught} of them, over ${families} families of rules. It blamed none of ${variants} conforming variants and none under ${environments} kinds of failing environment, and passed none of ${targets} dead or absurd targets. Of ${assertions} assertions ${fallible} have a fault that makes them fail.`;
}

export function trustSentences(): string[] {
  return [
    claim(proven),
    "A rule passes only if its control request succeeded and the customer, read back, was as it should be.",
    "What cannot be seen from outside (what is fetched from storage, how telemetry is broken down) is not tested; docs/coverage.md lists it sentence by sentence.",
  ];
}
