/** Every command, in the order of `customers --help`. */

import type { RegisterCommand } from "./common/command.ts";

/**
 * By the heading under which `customers --help` lists them, then by name. A new one is one line here. Each is loaded when it
 * is needed: most runs need one.
 */
export const COMMANDS: Readonly<Record<string, Readonly<Record<string, () => Promise<RegisterCommand>>>>> = {
  "Customers:": {
    get: async () => (await import("./get.ts")).registerGet,
    list: async () => (await import("./list.ts")).registerList,
    create: async () => (await import("./create.ts")).registerCreate,
    update: async () => (await import("./update.ts")).registerUpdate,
    edit: async () => (await import("./edit.ts")).registerEdit,
    delete: async () => (await import("./delete.ts")).registerDelete,
    undo: async () => (await import("./undo.ts")).registerUndo,
    watch: async () => (await import("./watch.ts")).registerWatch,
    history: async () => (await import("./history.ts")).registerHistory,
  },
  "Many customers:": {
    import: async () => (await import("./import.ts")).registerImport,
    export: async () => (await import("./export.ts")).registerExport,
  },
  "Servers and credentials:": {
    login: async () => (await import("./login.ts")).registerLogin,
    logout: async () => (await import("./logout.ts")).registerLogout,
    whoami: async () => (await import("./whoami.ts")).registerWhoami,
    profile: async () => (await import("./profile.ts")).registerProfile,
    config: async () => (await import("./config.ts")).registerConfig,
    doctor: async () => (await import("./doctor.ts")).registerDoctor,
  },
  "More:": {
    api: async () => (await import("./api.ts")).registerApi,
    completion: async () => (await import("./completion.ts")).registerCompletion,
    help: async () => (await import("./help.ts")).registerHelp,
  },
};
