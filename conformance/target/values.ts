import type { Names } from "./names.ts";

/** Values that no customer has ever had, so that a write that should not have happened shows. */
export type Values = { readonly name: string; readonly email: string };

const LETTERS = "abcdefghijklmnopqrstuvwxyz";

/** Letters alone, and short: deployments may validate names, limit them to few characters, or fold case. */
function letters(count: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(count)), (byte) => LETTERS[byte % 26]).join("");
}

export class FreshValues {
  readonly #run = letters(6);
  #count = 0;

  /** Whether a value is one that this run has made. */
  made(value: unknown): boolean {
    return typeof value === "string" && value.toLowerCase().includes(this.#run);
  }

  next(): Values {
    this.#count += 1;
    const word = [...this.#count.toString(26)].map((digit) => LETTERS[Number.parseInt(digit, 26)]).join("");
    const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
    return {
      name: `Kit ${capital(this.#run)} ${capital(word)}`,
      email: `kit.${this.#run}.${this.#count}@example.com`,
    };
  }

  /** Two that differ in most characters, and not in their lengths. Two fresh ones in a row differ in few, and may in length. */
  nextTwoOfOneLength([one, other]: readonly [string, string]): readonly [Values, Values] {
    const next = (word: string) => {
      const { name, email } = this.next();
      return { name: `${word} ${name}`, email: `${word}.${email}` };
    };
    const isAlike = (a: Values, b: Values) =>
      a.name.length === b.name.length && a.email.length === b.email.length;
    for (;;) {
      const two = [next(one), next(other)] as const;
      if (isAlike(...two)) return two;
    }
  }
}

/** Fills `{{name}}`, `{{email}}` and `{{id}}` of a JSON template; values are escaped for a JSON string. */
export function fillTemplate(template: string, values: Record<string, string>): string {
  return template.replace(/\{\{(\w+)\}\}/g, (whole, key: string) => {
    const value = values[key];
    return value === undefined ? whole : JSON.stringify(value).slice(1, -1);
  });
}

/** @param template of the profile, in place of an object with these names */
export function putBody(template: string | undefined, names: Names, { name, email }: Values): string {
  if (template !== undefined) return fillTemplate(template, { name, email });
  return JSON.stringify({ [names.name]: name, [names.email]: email });
}

/** A JSON Patch, or a template that is no JSON object, has no place for them and stays as it is. */
export function withMembers(body: string, members: Readonly<Record<string, unknown>> | undefined): string {
  if (members === undefined) return body;
  try {
    const object: unknown = JSON.parse(body);
    if (typeof object === "object" && object !== null && !Array.isArray(object))
      return JSON.stringify({ ...object, ...members });
  } catch {
    // A template of the profile may be no JSON at all.
  }
  return body;
}
