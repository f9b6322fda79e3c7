/** Every command, in the order of `customers --help`. A new one is one line here. */
import type { RegisterCommand } from "../program.ts";
import { registerGet } from "./get.ts";

export const COMMANDS: readonly RegisterCommand[] = [registerGet];
