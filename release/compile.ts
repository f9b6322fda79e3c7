import { join } from "node:path";
import { leavingOut } from "./left-out.ts";
import type { Platform } from "./platforms.ts";
import type { Program } from "./programs.ts";

const ROOT = new URL("..", import.meta.url).pathname;

export interface Compiled {
  readonly path: string;
  /** The npm packages whose code is in the executable, by their keys in bun.lock, in alphabetical order. */
  readonly packages: readonly string[];
}

/**
 * Compiles one program into one executable file, with bytecode so that it starts fast. It reads no `.env` and
 * no `bunfig.toml` from the directory in which it is run.
 *
 * @param commit what `--version` shows
 * @param platform this machine's where it is left out
 * @throws Error with the compiler's messages
 */
export async function compile(
  program: Program,
  { outfile, commit, platform }: { outfile: string; commit: string; platform?: Platform },
): Promise<Compiled> {
  const result = await Bun.build({
    entrypoints: program.entrypoints.map((path) => join(ROOT, path)),
    // Workers from several folders stand beside each other in the executable, as their `new URL("./…")` expects.
    naming: { entry: "[name].[ext]" },
    target: "bun",
    format: "esm", // bytecode with top-level await needs it
    bytecode: true,
    splitting: program.splitting ?? false,
    // Names stay, so that a stack trace says where.
    minify: { whitespace: true, syntax: true },
    metafile: true,
    define: { BUILD_COMMIT: JSON.stringify(commit), ...program.define },
    plugins: [leavingOut(program.leftOut ?? [])],
    compile: {
      ...(platform === undefined ? {} : { target: platform.target }),
      outfile,
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
  });
  if (!result.success) throw new Error(result.logs.join("\n"));
  return { path: outfile, packages: packagesOf(Object.keys(result.metafile?.inputs ?? {})) };
}

function packagesOf(inputs: readonly string[]): string[] {
  // A package with another version inside another package's folder has the key "outer/inner".
  const keys = inputs.flatMap((input) => {
    const names = [...input.matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)/g)].map(([, name]) => name);
    return names.length === 0 ? [] : [names.join("/")];
  });
  return [...new Set(keys)].sort();
}
