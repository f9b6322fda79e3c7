/** What the shell offers at Tab: from commander's own tree, so that it can't fall behind the options. */
import type { CommandUnknownOpts as Command, Option } from "@commander-js/extra-typings";

type Candidate = { value: string; description: string };
/** `files`: the shell completes a path itself. */
export type Completion = { kind: "words"; candidates: Candidate[] } | { kind: "files" };

/** Values that commander does not know, by the option's long name. */
type KnownValues = Readonly<Record<string, () => readonly string[]>>;

/**
 * @param typed the words after the program's name, up to the one being completed (the last, perhaps ""), as
 * the shell has them. bash splits at `=`, so `--output`, `=`, `j` means `--output=j`; only then may the last
 * word be completed alone.
 */
export function complete(program: Command, typed: readonly string[], known: KnownValues = {}): Completion {
  const { words, current, split } = joined(typed);
  const { command, awaiting, positional } = walk(program, words);
  if (awaiting !== undefined) return valuesOf(awaiting, current, known);
  const assignment = /^(--[^=]+)=(.*)$/s.exec(current);
  if (assignment !== null) {
    const [, name, value = ""] = assignment;
    const option = optionsOf(command).find(({ long }) => long === name);
    const values = option === undefined ? nothing() : valuesOf(option, value, known);
    return split ? values : prefixed(values, `${name}=`);
  }
  if (current.startsWith("-")) {
    const options = optionsOf(command).filter((option) => !option.hidden && option.long !== undefined);
    return matching(
      options.map((option) => ({ value: option.long ?? "", description: option.description })),
      current,
    );
  }
  if (command.commands.length > 0) {
    const commands = command.createHelp().visibleCommands(command);
    return matching(
      commands.map((child) => ({ value: child.name(), description: child.description() })),
      current,
    );
  }
  const argument = command.registeredArguments[positional];
  if (argument === undefined) return nothing();
  if (argument.argChoices !== undefined) return matching(bare(argument.argChoices), current);
  const values = known[argument.name()];
  if (values !== undefined) return matching(bare(values()), current);
  return /file|path/i.test(argument.name()) ? { kind: "files" } : nothing();
}

/** Follows the words down the tree; what is in an option's place is no command. */
function walk(program: Command, words: readonly string[]) {
  let command = program;
  let awaiting: Option | undefined;
  let positional = 0;
  for (const word of words) {
    if (awaiting !== undefined) {
      awaiting = undefined;
      continue;
    }
    if (word.startsWith("-")) {
      const option = optionsOf(command).find(({ long, short }) => word === long || word === short);
      if (option?.required) awaiting = option;
      continue;
    }
    const child = command.commands.find((candidate) => candidate.name() === word);
    if (child === undefined) positional += 1;
    else command = child;
  }
  return { command, awaiting, positional };
}

/** Its own and those of every command above it. */
function optionsOf(command: Command): Option[] {
  const own = command.createHelp().visibleOptions(command);
  const above = command.parent === null ? [] : optionsOf(command.parent);
  // Every command has --help.
  return [...own, ...above.filter(({ long }) => own.every((option) => option.long !== long))];
}

function valuesOf(option: Option, current: string, known: KnownValues): Completion {
  if (option.argChoices !== undefined) return matching(bare(option.argChoices), current);
  const values = known[option.long ?? ""];
  if (values !== undefined) {
    const before = current.slice(0, current.lastIndexOf(",") + 1); // lists are separated by commas
    return prefixed(matching(bare(values()), current.slice(before.length)), before);
  }
  return /<(?:path|file|directory)>/.test(option.flags) ? { kind: "files" } : nothing();
}

function joined(typed: readonly string[]): { words: string[]; current: string; split: boolean } {
  const words: string[] = [];
  let split = false;
  for (const [at, word] of typed.entries()) {
    const last = words.at(-1);
    const continues = word === "=" && last?.startsWith("--") === true && !last.includes("=");
    const completes = typed[at - 1] === "=" && last?.startsWith("--") === true && last.endsWith("=");
    if (last !== undefined && (continues || completes)) words[words.length - 1] = last + word;
    else words.push(word);
    split = continues || completes;
  }
  return { words: words.slice(0, -1), current: words.at(-1) ?? "", split };
}

function matching(candidates: Candidate[], current: string): Completion {
  return { kind: "words", candidates: candidates.filter(({ value }) => value.startsWith(current)) };
}

function prefixed(completion: Completion, prefix: string): Completion {
  if (completion.kind === "files") return completion;
  const candidates = completion.candidates.map(({ value, description }) => ({
    value: prefix + value,
    description,
  }));
  return { kind: "words", candidates };
}

function bare(values: readonly string[]): Candidate[] {
  return values.map((value) => ({ value, description: "" }));
}

function nothing(): Completion {
  return { kind: "words", candidates: [] };
}
