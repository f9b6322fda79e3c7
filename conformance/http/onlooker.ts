/**
 * Watches whether others write the customers of this run: a read shows a tag that was never seen, and nothing was
 * written by the kit since the read before. A tag seen earlier is a lagging copy and no sign of others.
 */
type Track = {
  readonly known: Set<string>;
  /** Tags that accepted writes of ours were sent with, each with the tag that the answer put in its place. */
  readonly replaced: Map<string, string>;
  readonly shownByReads: Set<string>;
  last: string | undefined;
  dirty: boolean;
  open: number;
};

/** Some probes spell an address otherwise: in capitals, or with a slash at its end. */
export const placeOf = (path: string): string => path.toLowerCase().replace(/\/+$/, "");

export class Onlooker {
  readonly #tracks = new Map<string, Track>();
  /** How often somebody else was seen to have written. */
  moved = 0;

  #track(spelled: string): Track {
    const path = placeOf(spelled);
    let track = this.#tracks.get(path);
    if (track === undefined) {
      track = {
        known: new Set(),
        replaced: new Map(),
        shownByReads: new Set(),
        last: undefined,
        dirty: true,
        open: 0,
      };
      this.#tracks.set(path, track);
    }
    return track;
  }

  /** Tags of a customer that reads, or answers to writes, have shown so far. */
  knownTags(path: string): ReadonlySet<string> {
    return new Set(this.#track(path).known);
  }

  writeBegins(path: string): void {
    const track = this.#track(path);
    track.open += 1;
    track.dirty = true;
  }

  /**
   * @param tag of the answer, where it carries one
   * @param accepted the If-Match of a write that was accepted
   */
  writeEnds(path: string, tag: string | undefined, accepted?: string): void {
    const track = this.#track(path);
    track.open -= 1;
    track.dirty = true;
    if (tag === undefined) return;
    track.known.add(tag);
    if (accepted !== undefined) track.replaced.set(accepted, tag);
    track.replaced.delete(tag);
  }

  /** Whether a read that shows this tag lags behind a write of ours that was accepted with it. */
  lags(path: string, tag: string | undefined): boolean {
    return tag !== undefined && this.#track(path).replaced.has(tag);
  }

  /** Whether a write of ours replaced it and a read shows so: a page of the environment may have a tag too. */
  isFormer(path: string, tag: string): boolean {
    const { replaced, shownByReads } = this.#track(path);
    // A tag that becomes the current one again leaves `replaced`, so there is no circle.
    for (let next = replaced.get(tag); next !== undefined; next = replaced.get(next))
      if (shownByReads.has(next)) return true;
    return false;
  }

  read(path: string, tag: string): void {
    const track = this.#track(path);
    track.shownByReads.add(tag);
    if (!track.dirty && track.last !== tag && !track.known.has(tag)) this.moved += 1;
    track.known.add(tag);
    track.last = tag;
    track.dirty = track.open > 0;
  }
}
