import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";

/**
 * A stranger may probe as often as it likes: without this each probe would take the write lock for itself.
 */
const READY_MS = 1_000;

/**
 * Whether the store can answer. A success holds for a second;
 * a failure is looked at anew, so that its end shows at once.
 */
export class Readiness {
  readonly #ping: () => MaybePromise<void>;
  #readyUntil = Number.NEGATIVE_INFINITY;
  #underWay: MaybePromise<void> | null = null;

  constructor(ping: () => MaybePromise<void>) {
    this.#ping = ping;
  }

  /** Fails with StoreUnavailable while the store cannot answer. Checks that come together share one look. */
  check(): MaybePromise<void> {
    if (performance.now() < this.#readyUntil) return;
    if (this.#underWay !== null) return this.#underWay;
    const looked = andThen(this.#ping(), () => {
      this.#readyUntil = performance.now() + READY_MS;
    });
    if (!(looked instanceof Promise)) return;
    this.#underWay = looked.finally(() => {
      this.#underWay = null;
    });
    return this.#underWay;
  }
}
