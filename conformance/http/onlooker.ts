/**
 * Watches whether others write the customers of this run: a read shows a tag that was never seen, and nothing was
 * written by the kit since the read before. A tag seen earlier is a lagging copy and no sign of others.
 */
type Track = {
  /** Tags that reads, or answers to writes, have shown. */
  readonly known: Set<string>;
  /** Tags that accepted writes of ours were sent with, each with the tag that the answer put in its place. */
  readonly replaced: Map<string, string>;
  readonly shownByReads: Set<string>;
  /** The tag that the last read showed. */
  lastRead: string | undefined;
  /** Whether a write of ours may have changed the tag since the last read, or before the first. */
  mayHaveChanged: boolean;
  /** Writes of ours that have no answer yet. */
  writesInFlight: number;
};

/** A key for an address that some probes spell otherwise: in capitals, or with a slash at its end. */
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
        lastRead: undefined,
        mayHaveChanged: true,
        writesInFlight: 0,
      };
      this.#tracks.set(path, track);
    }
    return track;
  }

  /** Tags of a customer that reads, or answers to writes, have shown so far. */
  knownTags(path: string): ReadonlySet<string> {
    return new Set(this.#track(path).known);
  }

  /** A write of ours is about to be sent. */
  writeBegins(path: string): void {
    const track = this.#track(path);
    track.writesInFlight += 1;
    track.mayHaveChanged = true;
  }

  /**
   * A write of ours was answered, or failed.
   * @param tag of the answer, where it carries one
   * @param accepted the If-Match of a write that was accepted
   */
  writeEnds(path: string, tag: string | undefined, accepted?: string): void {
    const track = this.#track(path);
    track.writesInFlight -= 1;
    track.mayHaveChanged = true;
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

  /** A read showed this tag: one that nobody of us made counts in `moved`. */
  read(path: string, tag: string): void {
    const track = this.#track(path);
    track.shownByReads.add(tag);
    if (!track.mayHaveChanged && track.lastRead !== tag && !track.known.has(tag)) this.moved += 1;
    track.known.add(tag);
    track.lastRead = tag;
    track.mayHaveChanged = track.writesInFlight > 0;
  }
}
