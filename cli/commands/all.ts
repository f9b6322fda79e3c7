/** Every command, in the order of `customers --help`. */

import { registerApi } from "./api.ts";
import type { RegisterCommand } from "./common/command.ts";
import { registerCompletion } from "./completion.ts";
import { registerConfig } from "./config.ts";
import { registerCreate } from "./create.ts";
import { registerDelete } from "./delete.ts";
import { registerDoctor } from "./doctor.ts";
import { registerEdit } from "./edit.ts";
import { registerExport } from "./export.ts";
import { registerGet } from "./get.ts";
import { registerHelp } from "./help.ts";
import { registerHistory } from "./history.ts";
import { registerImport } from "./import.ts";
import { registerList } from "./list.ts";
import { registerLogin } from "./login.ts";
import { registerLogout } from "./logout.ts";
import { registerProfile } from "./profile.ts";
import { registerUndo } from "./undo.ts";
import { registerUpdate } from "./update.ts";
import { registerWatch } from "./watch.ts";
import { registerWhoami } from "./whoami.ts";

/** By the heading under which `customers --help` lists them. A new one is one line here. */
export const COMMANDS: Readonly<Record<string, readonly RegisterCommand[]>> = {
  "Customers:": [
    registerGet,
    registerList,
    registerCreate,
    registerUpdate,
    registerEdit,
    registerDelete,
    registerUndo,
    registerWatch,
    registerHistory,
  ],
  "Many customers:": [registerImport, registerExport],
  "Servers and credentials:": [
    registerLogin,
    registerLogout,
    registerWhoami,
    registerProfile,
    registerConfig,
    registerDoctor,
  ],
  "More:": [registerApi, registerCompletion, registerHelp],
};
