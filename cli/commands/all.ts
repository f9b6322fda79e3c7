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

/** By the heading under which `customers --help` lists them, then by name. A new one is one line here. */
export const COMMANDS: Readonly<Record<string, Readonly<Record<string, RegisterCommand>>>> = {
  "Customers:": {
    get: registerGet,
    list: registerList,
    create: registerCreate,
    update: registerUpdate,
    edit: registerEdit,
    delete: registerDelete,
    undo: registerUndo,
    watch: registerWatch,
    history: registerHistory,
  },
  "Many customers:": { import: registerImport, export: registerExport },
  "Servers and credentials:": {
    login: registerLogin,
    logout: registerLogout,
    whoami: registerWhoami,
    profile: registerProfile,
    config: registerConfig,
    doctor: registerDoctor,
  },
  "More:": { api: registerApi, completion: registerCompletion, help: registerHelp },
};
