/** Every command, in the order of `customers --help`. A new one is one line here. */
import type { RegisterCommand } from "../program.ts";
import { registerCreate } from "./create.ts";
import { registerDelete } from "./delete.ts";
import { registerGet } from "./get.ts";
import { registerList } from "./list.ts";
import { registerUpdate } from "./update.ts";

export const COMMANDS: readonly RegisterCommand[] = [
  registerGet,
  registerList,
  registerCreate,
  registerUpdate,
  registerDelete,
];
