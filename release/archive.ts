import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runTool } from "./run-tool.ts";

/** One file of an archive: its name there, and either where it is or what it says. */
export type ArchiveFile = { readonly name: string } & ({ readonly path: string } | { readonly text: string });

/**
 * Writes `directory/NAME.tar.gz`, which holds the files in one folder NAME. Order, owner, modes and time are
 * given, so that the same files give the same archive, which all users of a machine may read.
 *
 * @param time seconds since 1970 that all files bear
 * @returns the path of the archive
 */
export async function writeArchive(
  directory: string,
  name: string,
  files: readonly ArchiveFile[],
  time: number,
): Promise<string> {
  const folder = join(directory, name);
  rmSync(folder, { recursive: true, force: true });
  for (const file of files) {
    const path = join(folder, file.name);
    mkdirSync(join(path, ".."), { recursive: true });
    if ("text" in file) writeFileSync(path, file.text);
    else copyFileSync(file.path, path);
  }
  const archive = `${folder}.tar.gz`;
  const fixed = [
    "--sort=name",
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    "--mode=u=rwX,go=rX",
    `--mtime=@${time}`,
  ];
  await runTool(["tar", "-C", directory, ...fixed, "-I", "gzip -n", "-cf", archive, name]);
  rmSync(folder, { recursive: true });
  return archive;
}
