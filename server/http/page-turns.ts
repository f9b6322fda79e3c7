import { PAGE_LIMIT_MAX } from "../domain/customer/customer.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";

/** A page that waits for its turn. */
type Waiting = { readonly customers: number; readonly start: () => void };

/**
 * Spreads pages over turns of the event loop: as many customers in one turn as the longest page has. All that
 * arrives in one turn is answered before the next, so 64 clients that each read pages of 500 without a pause held
 * up everyone else's reads and writes for 64 pages of 0.8 ms. Further pages wait, and tenants take turns.
 *
 * Bun drops the replies of a connection on which another request was sent behind one that is answered in a
 * later turn (pipelining). So a page is put off only where the turn is full; reads and writes of one customer
 * never are.
 */
export class PageTurns {
  #customers = 0;
  /** By tenant, in the order in which they take turns. No queue is empty. */
  readonly #waiting = new Map<string, Waiting[]>();

  /** @param customers how many the page has at most */
  run<Page>(tenant: string, customers: number, read: () => MaybePromise<Page>): MaybePromise<Page> {
    if (this.#waiting.size === 0 && this.#take(customers)) return read();
    return new Promise<void>((start) => {
      this.#waiting.getOrInsertComputed(tenant, () => []).push({ customers, start });
    }).then(read);
  }

  /** @returns whether this turn has room for so many more */
  #take(customers: number): boolean {
    if (this.#customers + customers > PAGE_LIMIT_MAX) return false;
    if (this.#customers === 0) setImmediate(() => this.#nextTurn());
    this.#customers += customers;
    return true;
  }

  #nextTurn(): void {
    this.#customers = 0;
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined) return;
      const [tenant, queue] = first;
      const [page] = queue;
      if (page === undefined || !this.#take(page.customers)) return;
      queue.shift();
      this.#waiting.delete(tenant);
      if (queue.length > 0) this.#waiting.set(tenant, queue);
      page.start();
    }
  }
}
