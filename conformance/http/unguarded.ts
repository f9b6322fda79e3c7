/**
 * Accepted writes that had to be refused, whichever request of the run it was: without If-Match, or with a tag that an
 * earlier accepted write of ours had replaced. One is believed when a read then shows the new tag that it was answered
 * with, or, after a DELETE, that the customer is gone: a page of the environment answers 200 as well, and does neither.
 */
import type { Exchange } from "../report/schema.ts";
import type { Maker } from "../target/journal.ts";
import { placeOf } from "./onlooker.ts";
import { isGone } from "./status.ts";

export type Slip = { readonly kind: "stale" | "missing"; readonly exchange: Exchange };

/**
 * Whether a read shows what an accepted write has done.
 * @param tag of its answer, where it is a new one
 * @param status of the read, and the entity-tag that is `shown`
 */
export function isApplied(
  method: string,
  tag: string | undefined,
  status: number,
  shown: string | undefined,
): boolean {
  if (method === "DELETE" && isGone(status)) return true;
  return status === 200 && tag !== undefined && tag === shown;
}

/** The address of a customer, and who reads it. */
type Place = { readonly url: string; readonly reader: Maker };

export class Unguarded {
  /** In the order of the run. */
  readonly slips: Slip[] = [];
  readonly #open = new Map<string, { slip: Slip; place: Place; tag: string | undefined }[]>();

  /** Customers that no read of theirs has shown since such a write. */
  get notReadYet(): Place[] {
    return [...this.#open.values()].flatMap((writes) => writes.slice(0, 1).map(({ place }) => place));
  }

  /** @param tag of the answer, where it is one that the customer has not had before */
  accepted(place: Place, slip: Slip, tag: string | undefined): void {
    const path = placeOf(new URL(place.url).pathname);
    this.#open.set(path, [...(this.#open.get(path) ?? []), { slip, place, tag }]);
  }

  /**
   * Decides on the open writes to a customer by what a read of its reader shows.
   * @param shown its entity-tag
   */
  read(path: string, status: number, shown: string | undefined): void {
    const place = placeOf(path);
    for (const { slip, tag } of this.#open.get(place) ?? [])
      if (isApplied(slip.exchange.request.method, tag, status, shown)) this.slips.push(slip);
    this.#open.delete(place);
  }
}
