/** Command lines as they are shown: what stands there runs as pasted once the named variables are set. */

import { variableOf } from "../target/caller-header.ts";

/** Where reports go by default. */
export const DEFAULT_OUT = "conformance-report";

/**
 * @param program how the kit was started: `bun run conformance`
 * @param words what follows `run`, secrets as `$NAME`.
 */
export function commandLine(program: string, words: readonly string[]): string {
  return [program, "run", ...words.map(shellWord)].join(" ");
}

/** The same run for one rule. Its reports go to a folder of their own, so that the full report stays. */
export function commandLineFor(program: string, rule: string, words: readonly string[]): string {
  const [, unfiltered] = without("--skip", without("--only", words)[1]);
  const [out = DEFAULT_OUT, kept] = without("--out", unfiltered);
  return commandLine(program, [...kept, "--only", rule, "--out", `${out.replace(/\/+$/, "")}/${rule}`]);
}

/** The value of a flag, the last one where it is repeated, and the words without it. */
function without(flag: string, words: readonly string[]): [value: string | undefined, rest: string[]] {
  let value: string | undefined;
  const rest: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    if (word === flag) {
      at += 1;
      value = words[at];
    } else if (word.startsWith(`${flag}=`)) value = word.slice(flag.length + 1);
    else rest.push(word);
  }
  return [value, rest];
}

/** A value with `$NAME` is left to the shell, as a header of `--header-env` must not be. */
function shellWord(word: string, index: number, words: readonly string[]): string {
  const expands = /\$\{?[A-Z]/.test(word) && !/-env$/.test(words[index - 1] ?? "");
  return expands ? `"${word.replace(/["\\`]/g, "\\$&")}"` : shellQuoted(word);
}

/** A word that the shell leaves as it is. */
export function shellQuoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Flags whose value is a header with its credential spelled out, and what stands before the name in its variable. */
const SPELLED_OUT: Readonly<Record<string, string>> = {
  "--header": "",
  "--limited-header": "LIMITED_",
  "--other-tenant-header": "OTHER_TENANT_",
  "--metrics-header": "METRICS_",
};

/** The words after `run` as they may be kept: a credential is `$NAME`, however short it is. */
export function withoutCredentials(words: readonly string[]): string[] {
  const masked = (line: string, prefix: string) => {
    const name = line.split(":")[0] ?? "";
    return `${name}: ${variableOf(name, prefix)}`;
  };
  return words.map((word, index) => {
    const prefix = SPELLED_OUT[words[index - 1] ?? ""];
    if (prefix !== undefined) return masked(word, prefix);
    const [flag = "", ...rest] = word.split("=");
    const own = SPELLED_OUT[flag];
    return own === undefined || rest.length === 0 ? word : `${flag}=${masked(rest.join("="), own)}`;
  });
}
