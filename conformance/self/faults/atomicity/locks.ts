/** ATM: locks that are too narrow or held for too long, and a pool that is too small (4.2, last rule). */

import type { Fault, Plant } from "../../fault.ts";
import type { Request } from "../../service/http-socket.ts";
import type { Service } from "../../service/service.ts";
import { gap } from "../../two-steps.ts";

/** Compares and saves under a lock, which is another for each key. */
const lockPer =
  (key: (request: Request, service: Service) => string): Plant =>
  (ran) =>
  (service) => {
    const tails = new Map<string, Promise<unknown>>();
    return {
      async commit(attempt) {
        await attempt.bodyRead();
        const lock = key(attempt.request, service);
        const before = tails.get(lock) ?? Promise.resolve();
        const mine = before.then(async () => {
          const refusal = attempt.decide();
          if (refusal !== undefined) return refusal;
          await gap(2);
          if (attempt.decide() !== undefined) ran();
          return attempt.apply();
        });
        tails.set(
          lock,
          mine.catch(() => undefined),
        );
        return await mine;
      },
    };
  };

/** Takes two writes at once, whichever customers they are for. */
const poolOfTwo: Plant = (ran) => () => {
  let busy = 0;
  return {
    async commit(attempt) {
      await attempt.bodyRead();
      if (busy >= 2) {
        ran();
        return { status: 503, headers: [], body: "no connection available" };
      }
      busy += 1;
      try {
        await gap(2);
        return attempt.decide() ?? attempt.apply();
      } finally {
        busy -= 1;
      }
    },
  };
};

export const LOCK_FAULTS: Fault[] = [
  {
    id: "locked-while-a-body-comes",
    rule: "ATM-05",
    does: "locks a customer from the head of a PUT to the end of its body",
    plant: (ran) => (service) => {
      const open = new Map<string, number>();
      return {
        async commit(attempt) {
          const { path } = attempt.request;
          open.set(path, (open.get(path) ?? 0) + 1);
          await attempt.bodyRead();
          open.set(path, (open.get(path) ?? 1) - 1);
          // Those of a race have their bodies a moment later; a slow one has not.
          if ((open.get(path) ?? 0) > 0) await Bun.sleep(30);
          if ((open.get(path) ?? 0) === 0) return attempt.decide() ?? attempt.apply();
          ran();
          return service.refuse(423, "locked");
        },
      };
    },
  },
  {
    id: "pool-of-two-connections",
    rule: "ATM-01",
    does: "has two connections to its database and answers 503 where a third is needed",
    plant: poolOfTwo,
  },
  {
    id: "lock-per-method",
    rule: "ATM-04",
    does: "serializes PUT with PUT and PATCH with PATCH, but not one with the other",
    plant: lockPer(({ method }) => method),
  },
  {
    id: "lock-per-caller",
    rule: "ATM-01",
    mode: "full",
    does: "serializes the writes of a session, but not those of two callers",
    plant: lockPer((request, service) => String(service.caller(request))),
  },
  {
    id: "lock-per-address",
    rule: "ATM-01",
    mode: "full",
    does: "locks by the address as it is spelled: an id in capitals is another lock",
    plant: lockPer(({ path }) => path),
  },
];
