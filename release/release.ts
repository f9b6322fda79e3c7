#!/usr/bin/env bun
/**
 * `bun run release`: all that a release consists of, in dist/release. For each program and platform an archive
 * with the executable, its completions, its documents, the licence and the bill of materials; npm packages; and
 * SHA256SUMS over all of them. Nothing is published.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Command, Option } from "@commander-js/extra-typings";
import packageJson from "../package.json" with { type: "json" };
import { type ArchiveFile, writeArchive } from "./archive.ts";
import { changelogFault } from "./changelog.ts";
import { compile } from "./compile.ts";
import { launcherPackage, libraryPackage, packPackage, platformPackage } from "./npm-packages.ts";
import { PLATFORMS } from "./platforms.ts";
import { PROGRAMS, type Program } from "./programs.ts";
import { runTool } from "./run-tool.ts";
import { billOfMaterials } from "./sbom.ts";

const ROOT = new URL("..", import.meta.url).pathname;
const VERSION = packageJson.version;
const DEFAULT_OUT = join(ROOT, "dist/release");
const CHECKSUMS = "SHA256SUMS";

const options = new Command("bun run release")
  .description("Builds the archives and npm packages of a release. Publishes nothing.")
  .option("--out <directory>", "where to put them; an earlier release there is removed", DEFAULT_OUT)
  .addOption(
    new Option("--platform <ids...>", "only these platforms").choices(PLATFORMS.map(({ id }) => id)).default(
      PLATFORMS.map(({ id }) => id),
      "all",
    ),
  )
  .option("--draft", "build uncommitted changes too, and without a dated section in CHANGELOG.md")
  .parse()
  .opts();

const commit = (await runTool(["git", "rev-parse", "--short=12", "HEAD"], ROOT)).trim();
const commitTime = Number(await runTool(["git", "log", "-1", "--format=%ct"], ROOT));
const changes = (await runTool(["git", "status", "--porcelain"], ROOT)).trim();
if (options.draft !== true) {
  const faults = [
    changes === "" ? null : `There are uncommitted changes. Commit them first:\n${changes}`,
    changelogFault(readFileSync(join(ROOT, "CHANGELOG.md"), "utf8"), VERSION),
  ].filter((fault) => fault !== null);
  if (faults.length > 0) {
    console.error(`${faults.join("\n")}\nTo try a release all the same, add --draft.`);
    process.exit(1);
  }
}

const out = options.out;
if (out !== DEFAULT_OUT && existsSync(out) && readdirSync(out).length > 0 && !isRelease(out)) {
  console.error(`${out} holds other files than a release, and would be emptied. Name a new directory.`);
  process.exit(1);
}
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const work = join(out, "work");
for (const program of PROGRAMS) await release(program);
await runTool([process.execPath, join(ROOT, "cli/build-client.ts"), join(work, "library")]);
await pack(libraryPackage(VERSION, join(work, "library"), work));
rmSync(work, { recursive: true });
writeChecksums();

async function release(program: Program): Promise<void> {
  const platforms = PLATFORMS.filter(({ os }) => os !== "win32" || program.runsOnWindows);
  for (const platform of platforms.filter(({ id }) => options.platform.includes(id))) {
    const executable = join(work, platform.id, `${program.name}${platform.os === "win32" ? ".exe" : ""}`);
    const revision = changes === "" ? commit : `${commit}+changes`;
    const { packages } = await compile(program, { platform, outfile: executable, commit: revision });
    const { name, description } = program;
    const sbom = billOfMaterials({ name, description, version: VERSION }, packages);
    const files = [
      { name: basename(executable), path: executable },
      { name: "LICENSE", path: join(ROOT, "LICENSE") },
      { name: "CHANGELOG.md", path: join(ROOT, "CHANGELOG.md") },
      { name: "sbom.cdx.json", text: sbom },
      ...documents(program).map(inArchive),
      ...(await completions(program)),
    ];
    console.log(await writeArchive(out, `${program.name}-${VERSION}-${platform.id}`, files, commitTime));
    await pack(platformPackage(program, platform, VERSION, executable, work));
  }
  await pack(launcherPackage(program, platforms, VERSION, work, documents(program)));
}

/** The program's README, and what it links to within its folder. */
function documents(program: Program): (ArchiveFile & { path: string })[] {
  const folder = join(ROOT, program.documents);
  return ["README.md", "docs/*.md", ...program.linked].flatMap((pattern) =>
    [...new Bun.Glob(pattern).scanSync({ cwd: folder })]
      .sort()
      .map((name) => ({ name, path: join(folder, name) })),
  );
}

/** The root of the project is one folder above a program's documents; CHANGELOG.md stands among them in an archive. */
function inArchive({ name, path }: ArchiveFile & { path: string }): ArchiveFile {
  if (!name.endsWith(".md")) return { name, path };
  return {
    name,
    text: readFileSync(path, "utf8").replaceAll(/\]\(\.\.\/((?:\.\.\/)*CHANGELOG\.md)/g, "]($1"),
  };
}

/** One completion script a shell, as the program prints it. */
async function completions(program: Program): Promise<ArchiveFile[]> {
  const entry = join(ROOT, program.entrypoints[0]);
  return await Promise.all(
    program.completionShells.map(async (shell) => ({
      name: `completions/${program.name}.${shell}`,
      text: await runTool([process.execPath, entry, "completion", shell]),
    })),
  );
}

async function pack(folder: string): Promise<void> {
  console.log(await packPackage(folder, join(out, "npm")));
}

function isRelease(directory: string): boolean {
  return existsSync(join(directory, CHECKSUMS));
}

/** In the form that `sha256sum --check` reads. */
function writeChecksums(): void {
  const lines = [...new Bun.Glob("**/*.{tar.gz,tgz}").scanSync({ cwd: out })].sort().map((name) => {
    const digest = new Bun.CryptoHasher("sha256").update(readFileSync(join(out, name))).digest("hex");
    return `${digest}  ${name}\n`;
  });
  writeFileSync(join(out, CHECKSUMS), lines.join(""));
}
