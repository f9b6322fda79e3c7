import type { Seen } from "../http/wire.ts";
import { plain } from "../target/names.ts";
import type { Field } from "../target/profile-file.ts";
import type { Attempt } from "./attempt.ts";
import { excerpt, note } from "./evidence.ts";

/** A probe `GET ?fields=…` with its evidence. */
export async function ask(t: Attempt, query: string, allowed: string): Promise<Seen> {
  const evidence = t.probe(`GET ${query}`, allowed);
  const seen = await t.get(t.kit.main, { query, purpose: "probe" });
  note(evidence, seen, { came: excerpt(seen) });
  return seen;
}

/** Whether a member stands for one of these fields, in any casing. */
export function isOneOf(name: string, fields: readonly Field[]): boolean {
  return (fields as readonly string[]).includes(plain(name));
}
