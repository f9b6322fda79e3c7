/**
 * The state in which each customer of this run was left: the one that the first read after its last accepted write
 * showed. What reads show later, with no write in between, must be the same.
 */
import { plain } from "../target/names.ts";
import { placeOf } from "./onlooker.ts";
import { isClientError, isGone } from "./status.ts";

export type State = { readonly tag: string; readonly values: string | undefined };

export class Left {
  /** Beginnings and ends of writes so far, so that a read can tell whether a write overlapped it. */
  writeEvents = 0;
  /** Writes that have no answer yet. */
  writesInFlight = 0;
  /** What the first read after the last accepted write showed. */
  state: State | undefined;
  /** Tags and values of earlier states, which a later read must not show again. */
  readonly formerTags = new Set<string>();
  readonly formerValues = new Set<string>();
  /** A write since that read may have been applied; also before the first read. */
  mayHaveChanged = true;
  /** The last write that may have been applied is an accepted DELETE. */
  deleted = false;
  /** A read has shown that it is gone. */
  gone = false;
}

export class Acknowledged {
  readonly #all = new Map<string, Left>();

  /** What is known of the customer at this address. */
  of(path: string): Left {
    const place = placeOf(path);
    const left = this.#all.get(place) ?? new Left();
    this.#all.set(place, left);
    return left;
  }

  /** A write is about to be sent. */
  writeBegins(path: string): void {
    const left = this.of(path);
    left.writeEvents += 1;
    left.writesInFlight += 1;
  }

  /**
   * A read is about to be sent.
   * @returns what to call with its answer; a read that a write overlaps says nothing
   */
  readBegins(path: string, query = "") {
    const left = this.of(path);
    const { writeEvents } = left;
    // What was not asked for may be shown empty.
    const asksForValues = query === "" || query === "?fields=name,email";
    return (
      status: number,
      tag: string | undefined,
      object: Readonly<Record<string, unknown>> | undefined,
    ) => {
      if (writeEvents === left.writeEvents && left.writesInFlight === 0)
        read(left, status, tag, asksForValues ? object : undefined);
    };
  }

  /**
   * A write has ended.
   * @param status of the answer; undefined where none came
   */
  wrote(path: string, method: string, status: number | undefined): void {
    const left = this.of(path);
    left.writesInFlight -= 1;
    left.writeEvents += 1;
    // Only a clear refusal leaves things as they were.
    if (status !== undefined && isClientError(status)) return;
    if (left.state !== undefined) left.formerTags.add(left.state.tag);
    if (left.state?.values !== undefined) left.formerValues.add(left.state.values);
    left.mayHaveChanged = true;
    left.gone = false;
    left.deleted = method === "DELETE" && status !== undefined && status < 300;
  }
}

function read(
  left: Left,
  status: number,
  tag: string | undefined,
  object: Readonly<Record<string, unknown>> | undefined,
): void {
  if (isGone(status)) left.gone ||= left.deleted;
  if (status !== 200 || tag === undefined) return;
  const state = { tag, values: object && valuesOf(object) };
  const known = tag === left.state?.tag || left.formerTags.has(tag);
  // Anything new is somebody's later write.
  if (left.mayHaveChanged || !known) left.state = state;
  else if (left.state?.tag === tag) left.state = { tag, values: left.state.values ?? state.values };
  left.mayHaveChanged = false;
}

/** Name and email, whatever the casing of their members; undefined where one of them is not shown. */
export function valuesOf(object: Readonly<Record<string, unknown>>): string | undefined {
  const members = Object.entries(object);
  const [name, email] = ["name", "email"].map(
    (field) => members.find(([member]) => plain(member) === field)?.[1],
  );
  return name === undefined || email === undefined ? undefined : JSON.stringify([name, email]);
}
