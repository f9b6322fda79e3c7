/** Command lines as they are shown: what stands there runs as pasted once the named variables are set. */

const FILTERS = ["--only", "--skip"];

/** @param words what follows `run`, secrets as `$NAME`. */
export function commandLine(words: readonly string[]): string {
  return ["conformance run", ...words.map(shellWord)].join(" ");
}

/** The same run for one rule. */
export function commandLineFor(rule: string, words: readonly string[]): string {
  const kept: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    if (FILTERS.includes(word)) at += 1;
    else if (!FILTERS.some((flag) => word.startsWith(`${flag}=`))) kept.push(word);
  }
  return commandLine([...kept, "--only", rule]);
}

/** A value with `$NAME` is left to the shell, as a header of `--header-env` must not be. */
function shellWord(word: string, index: number, words: readonly string[]): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  const expands = /\$\{?[A-Z]/.test(word) && !/-env$/.test(words[index - 1] ?? "");
  return expands ? `"${word.replace(/["\\`]/g, "\\$&")}"` : `'${word.replaceAll("'", `'\\''`)}'`;
}
