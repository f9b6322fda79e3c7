import { chmodSync, copyFileSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Platform } from "./platforms.ts";
import type { Program } from "./programs.ts";
import { runTool } from "./run-tool.ts";

const ROOT = new URL("..", import.meta.url).pathname;

/** Writes the npm package that holds the executable of one platform. npm installs it where os, cpu and libc match. */
export function platformPackage(
  program: Program,
  platform: Platform,
  version: string,
  executable: string,
  parent: string,
): string {
  const name = `${program.npmName}-${platform.id}`;
  const folder = startPackage(parent, name, {
    version,
    description: `${program.description}: the executable for ${platform.id}`,
    os: [platform.os],
    cpu: [platform.cpu],
    ...(platform.libc === undefined ? {} : { libc: [platform.libc] }),
    files: ["bin"],
    preferUnplugged: true,
  });
  mkdirSync(join(folder, "bin"));
  copyFileSync(executable, join(folder, "bin", basename(executable)));
  writeFileSync(
    join(folder, "README.md"),
    `# ${name}\n\nInstall \`${program.npmName}\`, which chooses this.\n`,
  );
  return folder;
}

/**
 * Writes the npm package that users install: a launcher, with the executables as optional dependencies.
 */
export function launcherPackage(
  program: Program,
  platforms: readonly Platform[],
  version: string,
  parent: string,
  documents: readonly { readonly name: string; readonly path: string }[],
): string {
  const folder = startPackage(parent, program.npmName, {
    version,
    description: program.description,
    bin: { [program.name]: "bin/launcher.mjs" },
    engines: { node: ">=20" },
    optionalDependencies: Object.fromEntries(
      platforms.map((platform) => [`${program.npmName}-${platform.id}`, version]),
    ),
  });
  mkdirSync(join(folder, "bin"));
  copyFileSync(join(ROOT, "release/launcher.mjs"), join(folder, "bin/launcher.mjs"));
  chmodSync(join(folder, "bin/launcher.mjs"), 0o755);
  for (const { name, path } of documents) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    copyFileSync(path, join(folder, name));
  }
  return folder;
}

/** Writes the client's library as a package of its own: one module, its types, no dependency. */
export function libraryPackage(version: string, library: string, parent: string): string {
  const folder = startPackage(parent, "customers-client", {
    version,
    description: "Library of the customer resource API: read, change, write, and merge after a 412",
    type: "module",
    exports: { ".": { types: "./dist/customers.d.ts", default: "./dist/customers.js" } },
    sideEffects: false,
    engines: { node: ">=20" },
    files: ["dist"],
  });
  cpSync(library, join(folder, "dist"), { recursive: true });
  copyFileSync(join(ROOT, "cli/client/README.md"), join(folder, "README.md"));
  return folder;
}

/** @returns the path of the package's tarball in `outdir` */
export async function packPackage(folder: string, outdir: string): Promise<string> {
  mkdirSync(outdir, { recursive: true });
  const command = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", outdir];
  return join(outdir, (await runTool(command, folder)).trim());
}

function startPackage(parent: string, name: string, fields: object): string {
  const folder = join(parent, name);
  mkdirSync(folder, { recursive: true });
  const manifest = { name, license: "MIT", ...fields };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  copyFileSync(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
  return folder;
}
