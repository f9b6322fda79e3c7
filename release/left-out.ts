/**
 * What packages load at their start and the program never uses. An executable that starts often is built without it; from
 * source, the packages run as they are.
 */
import type { BunPlugin } from "bun";

export interface LeftOut {
  /** The file, as its path from node_modules. */
  readonly file: string;
  readonly text: string;
  /** What stands there instead. */
  readonly instead: string;
}

/**
 * Node's HTTP server and HTTP/2 take a sixth of the processor time of a `get`. undici wants of the first the type of a message
 * that nobody hands it, and one number; it runs without the second, since the client never allows HTTP/2.
 */
export const UNDICI_WITHOUT_NODE_HTTP: readonly LeftOut[] = [
  {
    file: "undici/lib/core/util.js",
    text: "require('node:http')",
    instead: "{ IncomingMessage: class {} }",
  },
  {
    file: "undici/lib/dispatcher/client.js",
    text: "require('node:http')",
    instead: "{ maxHeaderSize: 16384 }", // the default of Bun and of Node.js
  },
  {
    file: "undici/lib/dispatcher/client-h2.js",
    text: "require('node:http2')",
    instead: "{ constants: {} }", // as undici itself does where there is none
  },
];

/** `node:util` takes a tenth of the processor time of `--version`, and commander wants one function of it. */
export const COMMANDER_WITHOUT_NODE_UTIL: readonly LeftOut[] = [
  {
    file: "commander/lib/command.js",
    text: "import { stripVTControlCharacters } from 'node:util';",
    instead: "const stripVTControlCharacters = Bun.stripANSI;",
  },
  {
    file: "commander/lib/help.js",
    text: "import { stripVTControlCharacters } from 'node:util';",
    instead: "const stripVTControlCharacters = Bun.stripANSI;",
  },
];

/** The build fails where a text is not there exactly once: another version of the package must be looked at anew. */
export function leavingOut(all: readonly LeftOut[]): BunPlugin {
  return {
    name: "leaving out",
    setup(build) {
      for (const { file, text, instead } of all) {
        const path = new RegExp(`/node_modules/${RegExp.escape(file)}$`);
        build.onLoad({ filter: path }, async ({ path }) => {
          const parts = (await Bun.file(path).text()).split(text);
          if (parts.length !== 2)
            throw new Error(`${file} has no ${text}, or several: adapt release/left-out.ts`);
          return { contents: parts.join(instead), loader: "js" };
        });
      }
    },
  };
}
