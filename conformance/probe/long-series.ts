/** Many writes of one customer, for tags that come back late. */
import type { Attempt } from "./attempt.ts";
import { accepted } from "./trial.ts";

/** A version kept in a byte, or a counter that wraps, comes back after 256 writes; with fewer rounds of races, sooner is enough. */
const WRITES_A_ROUND = 16;
const SERIES_MS = 1500;
/** The share of the budget that a series may take: one in so many requests. */
const BUDGET_SHARE = 50;

/** As many writes as there is time for, with the tag of each answer. */
export async function longSeries(t: Attempt, tags: string[]): Promise<void> {
  const { rounds, budget } = t.kit.options;
  const most = Math.min(rounds * WRITES_A_ROUND, budget / BUDGET_SHARE);
  const start = performance.now();
  const had = new Set(tags);
  const evidence = t.probe("further PUTs of the series", "a token that this customer never had");
  while (tags.length < most && performance.now() - start < SERIES_MS) {
    const put = await t.rawWrite("PUT", t.kit.main, { ifMatch: tags.at(-1) ?? "", purpose: "series" });
    if (!accepted(put.status)) return;
    const tag = put.tag ?? (await t.state(t.kit.main)).tag;
    evidence.came = `ETag ${tag}`;
    evidence.sent = put.exchange.n;
    // What an answer shows and no read does is ETG-07's to blame.
    if (had.has(tag) && (await t.state(t.kit.main)).tag !== tag) return;
    const age = tags.length - tags.indexOf(tag);
    if (
      !t.check(
        "never-again",
        !had.has(tag) || tag === tags.at(-1),
        `the tag ${tag} of ${age} writes ago is back`,
      )
    )
      return;
    had.add(tag);
    tags.push(tag);
  }
}
