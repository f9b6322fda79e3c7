/**
 * The state in which each customer of this run was left: the one that the first read after its last accepted write
 * showed. What reads show later, with no write in between, must be the same.
 */
import { plain } from "../target/names.ts";
import { placeOf } from "./onlooker.ts";
import { isClientError, isGone } from "./status.ts";

export type State = { readonly tag: string; readonly values: string | undefined };

export class Left {
  /** Moves when a write begins and when it ends. */
  moment = 0;
  /** Writes that have no answer yet. */
  under = 0;
  /** What the first read after the last accepted write showed. */
  state: State | undefined;
  readonly formerTags = new Set<string>();
  readonly formerValues = new Set<string>();
  /** A write since then may have been applied. */
  open = true;
  deleted = false;
  /** A read has shown that it is gone. */
  gone = false;
}

export class Acknowledged {
  readonly #all = new Map<string, Left>();

  of(path: string): Left {
    const place = placeOf(path);
    const left = this.#all.get(place) ?? new Left();
    this.#all.set(place, left);
    return left;
  }

  writeBegins(path: string): void {
    const left = this.of(path);
    left.moment += 1;
    left.under += 1;
  }

  /** What to call with the answer to a read: one that a write overlaps says nothing. */
  readBegins(path: string, query = "") {
    const left = this.of(path);
    const { moment } = left;
    // What was not asked for may be shown empty.
    const asksForValues = query === "" || query === "?fields=name,email";
    return (
      status: number,
      tag: string | undefined,
      object: Readonly<Record<string, unknown>> | undefined,
    ) => {
      if (moment === left.moment && left.under === 0)
        read(left, status, tag, asksForValues ? object : undefined);
    };
  }

  /** @param status of the answer; undefined where none came */
  wrote(path: string, method: string, status: number | undefined): void {
    const left = this.of(path);
    left.under -= 1;
    left.moment += 1;
    // Only a clear refusal leaves things as they were.
    if (status !== undefined && isClientError(status)) return;
    if (left.state !== undefined) left.formerTags.add(left.state.tag);
    if (left.state?.values !== undefined) left.formerValues.add(left.state.values);
    left.open = true;
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
  if (left.open || !known) left.state = state;
  else if (left.state?.tag === tag) left.state = { tag, values: left.state.values ?? state.values };
  left.open = false;
}

/** Name and email, whatever the casing of their members; undefined where one of them is not shown. */
export function valuesOf(object: Readonly<Record<string, unknown>>): string | undefined {
  const members = Object.entries(object);
  const [name, email] = ["name", "email"].map(
    (field) => members.find(([member]) => plain(member) === field)?.[1],
  );
  return name === undefined || email === undefined ? undefined : JSON.stringify([name, email]);
}
