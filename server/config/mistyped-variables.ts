import { nearest } from "../domain/text/nearest.ts";
import { SETTING_NAMES, variableOf } from "./settings.ts";

/** Shorter names are too often near to HOST or PORT by chance. */
const CHARACTERS_MIN = 6;

/**
 * Variables whose names look like misspelled settings: a service with POLICY_FIEL in its environment would start with the
 * built-in policy.
 *
 * @param names of the variables in the environment
 * @returns a sentence for each
 */
export function mistypedVariables(names: readonly string[]): string[] {
  const known = SETTING_NAMES.map(variableOf);
  return names.flatMap((name) => {
    if (name.length < CHARACTERS_MIN || known.includes(name)) return [];
    const meant = nearest(name, known);
    return meant === null ? [] : [`${name} is no setting, and is ignored; did you mean ${meant}?`];
  });
}
