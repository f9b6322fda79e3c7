/** What program.ts and a command know of each other. */
import type { Command } from "commander";
import type { Flags } from "../config/flags.ts";
import type { Ending, Invocation } from "../invocation.ts";

/**
 * Makes a commander action of a command's body. The body gets its positional arguments as written and its
 * options as commander parsed them; what it returns is the ending.
 */
export type Run = <Options = Record<string, never>>(
  body: (
    invocation: Invocation,
    args: readonly (string | undefined)[],
    options: Options & Flags,
  ) => Promise<Ending>,
  /** "no-profile" for what must work whatever stands in the profile file: the settings then leave it out. */
  needs?: "no-profile",
) => (...all: unknown[]) => Promise<void>;

/** A command adds itself to the program; heavy packages are imported inside its body, never at the top. */
export type RegisterCommand = (program: Command, run: Run) => void;
