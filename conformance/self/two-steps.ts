/** Check and update as two steps, with a gap between them that only other writers can show. */

import { deciding, type Plant } from "./fault.ts";
import type { Reply } from "./service/http-socket.ts";
import { type Attempt, turn } from "./service/seams.ts";
import type { Service } from "./service/service.ts";

/** Awaits between check and update, as any ORM's find-then-save does. */
export async function gap(turns: number): Promise<void> {
  for (let n = 0; n < turns; n += 1) await turn();
  await Bun.sleep(2);
}

type Late = (refusal: Reply, attempt: Attempt, service: Service) => Reply | undefined;

/**
 * Checks when a write comes and, a moment later, when it is to be applied. What only the second check refuses has lost a
 * race, and is answered as `late` says; undefined passes the refusal on.
 */
export const checkedTwice = (late: Late, methods = /./): Plant =>
  deciding("commit", (sound, ran, service) => async (attempt) => {
    if (!methods.test(attempt.request.method)) return await sound(attempt);
    await attempt.bodyRead();
    const early = attempt.decide();
    if (early !== undefined) return early;
    await gap(2);
    const refusal = attempt.decide();
    if (refusal === undefined) return attempt.apply();
    const answer = late(refusal, attempt, service);
    if (answer !== undefined) ran();
    return answer ?? refusal;
  });

/** @param status of the refusals that are spoiled; others are passed on */
export const refusedLate = (status: number, answer: Late, methods?: RegExp): Plant =>
  checkedTwice(
    (refusal, ...rest) => (refusal.status === status ? answer(refusal, ...rest) : undefined),
    methods,
  );
