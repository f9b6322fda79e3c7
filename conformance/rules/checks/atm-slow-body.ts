/** ATM-05: a PUT whose body comes late. */

import type { Attempt } from "../../probe/attempt.ts";
import { describe } from "../../probe/evidence.ts";
import { CouldNotRun, NotApplicable } from "../../probe/outcome-signal.ts";
import { enforced } from "../../probe/race.ts";
import { accepted, difference, stateOf } from "../../probe/trial.ts";

/** How long another request may take while a body is under way, before it counts as held up by it. */
const PATIENCE_MS = 3000;

export async function slowBody(t: Attempt): Promise<void> {
  await enforced(t, "PUT");
  for (let number = 1; number <= (t.quick ? 1 : 3); number += 1) await oneSlowBody(t);
}

async function oneSlowBody(t: Attempt): Promise<void> {
  const { tag, twin } = await t.twin("PUT", t.kit.main);
  const evidence = t.probe(
    "PUT whose last body byte comes after another accepted PUT",
    "412, and the other's values stay",
  );
  const slow = await t.kit.wire.hold({
    rule: t.rule.id,
    ...t.writeAsk("PUT", t.kit.main, { ifMatch: tag, purpose: "probe: slow body" }),
  });
  const quick = t.rawWrite("PUT", t.kit.main, { ifMatch: tag, purpose: "PUT in between" });
  if (!(await isAnswered(t, quick))) {
    const other = t.get(t.kit.ground.missing(), { purpose: "is anything answered meanwhile" });
    const alive = await isAnswered(t, other);
    t.keep((await slow.release()).exchange);
    await Promise.allSettled([quick, other]);
    if (!alive)
      throw new NotApplicable(
        "the service takes one request at a time, so no write comes between a slow one's parts",
      );
    t.check("not-locked", false, "while a slow PUT was open, another with the current tag was not answered");
    return;
  }
  const { status } = await quick;
  const between = await t.state(t.kit.main, "read in between");
  const { exchange, seen } = await slow.release();
  t.keep(exchange);
  const after = await t.state(t.kit.main);
  Object.assign(evidence, {
    came: seen === undefined ? `no complete reply: ${exchange.failure}` : describe(seen),
    sent: exchange.n,
    before: stateOf(between.seen),
    after: stateOf(after.seen),
    unchanged: t.same(between, after),
    twin: { differs: "nobody else writes meanwhile", n: twin.exchange.n, status: twin.status, ok: true },
  });
  const open = `while a slow PUT was open, another with the current tag was answered ${status}`;
  if (!t.check("not-locked", accepted(status), open)) return;
  if (between.tag === tag)
    throw new CouldNotRun(
      "the tag does not change on an accepted write, so the slow one is not stale; see ETG-08",
    );
  if (seen !== undefined)
    t.check(
      "refused",
      !accepted(seen.status),
      `the slow PUT with the tag ${tag}, stale by then, was answered ${seen.status}`,
    );
  t.check("unchanged", t.same(between, after), () => `the slow PUT: ${difference(between, after)}`);
}

/** Whether a reply comes in time. A failure is an answer here: whoever awaits the request hears of it. */
async function isAnswered(t: Attempt, request: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = Math.min(PATIENCE_MS, t.kit.profile.timeoutMs / 2);
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), patience);
  });
  try {
    return await Promise.race([
      request.then(
        () => true,
        () => true,
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
