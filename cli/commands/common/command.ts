/** What program.ts and a command know of each other. */
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import type { Ending, Invocation } from "../../invocation.ts";

/**
 * Makes a commander action of a command's body. The body gets what commander gives an action, the arguments and then
 * the options as they were parsed; what it returns is the ending.
 */
export type Run = <Given extends unknown[]>(
  body: (invocation: Invocation, ...given: Given) => Promise<Ending>,
  /** "no-profile" for what must work whatever stands in the profile file: the settings then leave it out. */
  needs?: "no-profile",
) => (...given: Given) => Promise<void>;

/** A command adds itself to the program; heavy packages are imported inside its body, never at the top. */
export type RegisterCommand = (program: CommandUnknownOpts, run: Run) => void;
