/** What users install: archives and npm packages, used from an empty HOME with nothing of Bun on the PATH. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { compile } from "./compile.ts";
import { PLATFORMS } from "./platforms.ts";
import { PROGRAMS } from "./programs.ts";
import { runTool } from "./run-tool.ts";

const VERSION = packageJson.version;
const ROOT = new URL("..", import.meta.url).pathname;
/** npm has no lower limit for a package; a larger file would hint at a program that was bundled twice. */
const EXECUTABLE_BYTES_MAX = 160 * 1024 ** 2;

const work = mkdtempSync(join(tmpdir(), "customers-release-"));
const out = join(work, "release");
const home = join(work, "home");
mkdirSync(home);
/** Node and npm, and the tools of a bare machine. */
const PATH = `${dirname(Bun.which("node") ?? "")}:/usr/bin:/bin`;
const env = { PATH, HOME: home, XDG_RUNTIME_DIR: home, npm_config_fetch_retries: "0" };

beforeAll(async () => {
  const command = [process.execPath, join(ROOT, "release/release.ts"), "--draft", "--out", out];
  await runTool([...command, "--platform", "linux-x64"]);
  for (const { name } of PROGRAMS) await runTool(["tar", "-C", work, "-xzf", archive(name)]);
}, 600_000);
afterAll(() => rmSync(work, { recursive: true, force: true }));

function archive(name: string): string {
  return join(out, `${name}-${VERSION}-linux-x64.tar.gz`);
}

function unpacked(name: string, file = name): string {
  return join(work, `${name}-${VERSION}-linux-x64`, file);
}

async function run(command: readonly string[], variables: Record<string, string> = {}) {
  const child = Bun.spawn([...command], {
    cwd: home,
    env: { ...env, ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { exitCode: await child.exited, stdout, stderr };
}

/** Starts the service on a free port. @returns its URL, the admin's token, and its process */
async function startService(command: readonly string[]) {
  const directory = mkdtempSync(join(work, "data-"));
  const child = Bun.spawn([...command, "serve", "--print-url"], {
    cwd: home,
    env: { ...env, PORT: "0", DATABASE_URL: `sqlite:${directory}/customers.db` },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const { value } = await child.stdout.getReader().read();
  const { url } = JSON.parse(new TextDecoder().decode(value));
  return { url, token: readFileSync(join(directory, "admin.token"), "utf8").trim(), child };
}

describe("an archive", () => {
  test("SHA256SUMS names every archive and package, and each is as it says", async () => {
    const { stdout, exitCode } = await run([
      "sh",
      "-c",
      `cd ${out} && sha256sum --check --strict SHA256SUMS`,
    ]);
    expect(exitCode).toBe(0);
    expect(stdout.trim().split("\n")).toHaveLength(2 * PROGRAMS.length + PROGRAMS.length + 1);
  });

  for (const { name, completionShells } of PROGRAMS) {
    test(`${name} stands beside its documents, licence, completions and bill of materials`, async () => {
      const { stdout } = await run(["tar", "-tzf", archive(name)]);
      const files = stdout.split("\n").map((path) => path.slice(path.indexOf("/") + 1));
      expect(files).toEqual(
        expect.arrayContaining([name, "README.md", "LICENSE", "CHANGELOG.md", "sbom.cdx.json"]),
      );
      for (const shell of completionShells) expect(files).toContain(`completions/${name}.${shell}`);
    });

    test(`${name}: no link of its documents leads to nothing in the archive`, () => {
      const folder = unpacked(name, "");
      const dead = [...new Bun.Glob("**/*.md").scanSync({ cwd: folder })].flatMap((file) =>
        [...readFileSync(join(folder, file), "utf8").matchAll(/\]\(([^)#:]+)[^):]*\)/g)]
          .map(([, link = ""]) => join(dirname(file), link))
          // Source code and the other programs are not part of an archive.
          .filter(
            (path) =>
              (!path.startsWith("..") || path.endsWith("CHANGELOG.md")) &&
              !/\.ts$|^bench\//.test(path) &&
              !existsSync(join(folder, path)),
          )
          .map((path) => `${file}: ${path}`),
      );
      expect(dead).toEqual([]);
    });

    test(`${name} tells its version, commit and platform`, async () => {
      const { stdout } = await run([unpacked(name), "--version"]);
      expect(stdout).toMatch(
        new RegExp(
          `^${name} ${RegExp.escape(VERSION)} \\(commit [0-9a-f]{12}(?:\\+changes)?, linux-x64\\)\\n$`,
        ),
      );
    });

    test(`${name}: every component of the bill of materials has a version, a licence and a purl`, () => {
      const bom = JSON.parse(readFileSync(unpacked(name, "sbom.cdx.json"), "utf8"));
      expect([bom.bomFormat, bom.specVersion]).toEqual(["CycloneDX", "1.6"]);
      const components: { name: string; version?: string; purl?: string; licenses?: unknown[] }[] =
        bom.components;
      expect(components.map((component) => component.name)).toEqual(
        expect.arrayContaining(["bun", "commander", name === "customers-server" ? "elysia" : "undici"]),
      );
      for (const { version, purl, licenses } of components) {
        expect(version).toMatch(/^\d/);
        expect(purl).toStartWith("pkg:npm/");
        expect(licenses).toHaveLength(1);
      }
    });
  }

  test("the three programs work together, from an empty HOME and without Bun", async () => {
    const { url, token, child } = await startService([unpacked("customers-server")]);
    try {
      const settings = { CUSTOMERS_URL: url, CUSTOMERS_TOKEN: token };
      const list = await run([unpacked("customers"), "list"], settings);
      expect([list.exitCode, list.stderr]).toEqual([0, ""]);
      const kit = await run(
        [unpacked("customers-conformance"), "run", "--base-url", url, "--only", "ETG-01"].concat([
          "--header-env",
          "Authorization: Bearer $CUSTOMERS_TOKEN",
        ]),
        settings,
      );
      expect(kit.stdout).toContain("conforms");
      expect(kit.exitCode).toBe(0);
    } finally {
      child.kill("SIGTERM");
    }
    expect(await child.exited).toBe(0);
  });

  test("the kit's executable shows the specification's text in its page", async () => {
    const { stdout, exitCode } = await run([unpacked("customers-conformance"), "rules", "--coverage"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("If-Match");
  });
});

/** The first bytes of an executable, and where its processor is named. */
const FORMATS = {
  linux: { magic: "7f454c46", at: 18, cpu: { x64: "3e00", arm64: "b700" } },
  darwin: { magic: "cffaedfe", at: 4, cpu: { x64: "07000001", arm64: "0c000001" } },
  win32: { magic: "4d5a", at: 0, cpu: { x64: "4d5a", arm64: "4d5a" } },
} as const;

// The executables for linux-x64 run above. A platform's format does not depend on the program, so each of the others
// compiles one, and each program is compiled for several.
for (const [at, platform] of PLATFORMS.filter(({ id }) => id !== "linux-x64").entries()) {
  const programs = PROGRAMS.filter(({ runsOnWindows }) => platform.os !== "win32" || runsOnWindows);
  for (const program of programs.slice(at % programs.length, (at % programs.length) + 1)) {
    test(`${program.name} compiles for ${platform.id}, in its format and below the size limit`, async () => {
      const path = join(work, platform.id, platform.os === "win32" ? `${program.name}.exe` : program.name);
      await compile(program, { platform, outfile: path, commit: "test" });
      const { magic, at, cpu } = FORMATS[platform.os];
      const head = Buffer.alloc(32);
      const file = openSync(path, "r");
      readSync(file, head);
      closeSync(file);
      expect(head.toString("hex", 0, magic.length / 2)).toBe(magic);
      expect(head.toString("hex", at)).toStartWith(cpu[platform.cpu]);
      expect(statSync(path).size).toBeLessThan(EXECUTABLE_BYTES_MAX);
      rmSync(path);
    });
  }
}

describe("the npm packages, installed with Node alone", () => {
  /** Stands for a registry that has none of our packages: those of other platforms must not be needed. */
  let registry: ReturnType<typeof Bun.serve>;
  const installed = join(home, "installed");
  const bin = (name: string) => join(installed, "node_modules/.bin", name);

  beforeAll(async () => {
    registry = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response("{}", { status: 404 }),
    });
    mkdirSync(installed);
    writeFileSync(join(installed, "package.json"), "{}");
    const names = PROGRAMS.flatMap(({ npmName }) => [npmName, `${npmName}-linux-x64`]).concat(
      "customers-client",
    );
    const tarballs = names.map((name) => join(out, "npm", `${name}-${VERSION}.tgz`));
    const { exitCode, stderr } = await run(
      ["npm", "install", "--prefix", installed, "--no-audit", "--no-fund", ...tarballs],
      { npm_config_registry: registry.url.href },
    );
    expect([exitCode, exitCode === 0 ? "" : stderr]).toEqual([0, ""]);
  });
  afterAll(() => registry.stop(true));

  for (const { name } of PROGRAMS) {
    test(`${name} runs, and its exit code is the program's`, async () => {
      expect((await run([bin(name), "--version"])).stdout).toStartWith(`${name} ${VERSION} (`);
      expect((await run([bin(name), "--no-such-option"])).exitCode).toBe(2);
    });
  }

  test.each(PROGRAMS.map(({ name, documents }) => [name, documents] as const))(
    "%s is installed by the lines of its README.md, pasted in the clone, which stays as it was",
    async (name, documents) => {
      const readme = readFileSync(join(ROOT, documents, "README.md"), "utf8");
      const [, lines = ""] = /```sh\n(npm install [\s\S]*?)```/.exec(readme) ?? [];
      const clone = join(mkdtempSync(join(work, "installed-")), "clone");
      mkdirSync(join(clone, "dist"), { recursive: true });
      symlinkSync(out, join(clone, "dist/release"));
      copyFileSync(join(ROOT, "package.json"), join(clone, "package.json"));
      const { stdout, stderr } = await run(["sh", "-ec", `cd ${clone} && ${lines}`], {
        npm_config_registry: registry.url.href,
      });
      expect([stdout, stdout === "" ? stderr : ""]).toEqual([
        expect.stringContaining(`${name} ${VERSION} (`),
        "",
      ]);
      expect(readdirSync(clone).sort()).toEqual(["dist", "package.json"]);
      expect(readFileSync(join(clone, "package.json"), "utf8")).toBe(
        readFileSync(join(ROOT, "package.json"), "utf8"),
      );
    },
  );

  test("a signal for the launcher reaches the program, and its end is the launcher's", async () => {
    const { child } = await startService([bin("customers-server")]);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
  });

  test("the library is imported by its name and has types", async () => {
    const script =
      'import("customers-client").then((library) => console.log(Object.keys(library).sort().join()))';
    const { stdout } = await run(["sh", "-c", `cd ${installed} && node -e '${script}'`]);
    expect(stdout.trim().split(",")).toContain("openCustomers");
    expect(
      readFileSync(join(installed, "node_modules/customers-client/dist/customers.d.ts"), "utf8"),
    ).toContain("openCustomers");
    const readme = readFileSync(join(installed, "node_modules/customers-client/README.md"), "utf8");
    expect(
      [...readme.matchAll(/from "([^"]+)"|customers-client-(\d\S+)\.tgz/g)].map(([, from, at]) => from ?? at),
    ).toEqual([VERSION, "customers-client"]);
  });

  const manifest = join(installed, "node_modules/customers-cli/package.json");
  const FAILURES: readonly (readonly [title: string, from: string, to: string, says: string])[] = [
    [
      "a platform without a build is refused in a sentence that names the supported ones",
      '"customers-cli-linux-x64"',
      '"customers-cli-plan9-mips"',
      "there is no build for linux-x64. Supported: plan9-mips, linux-arm64",
    ],
    [
      "a platform's package that npm left out is named",
      '"name": "customers-cli"',
      '"name": "customers-elsewhere"',
      "Install customers-elsewhere again, without --omit=optional.",
    ],
  ];
  for (const [title, from, to, says] of FAILURES) {
    test(title, async () => {
      const text = readFileSync(manifest, "utf8");
      const changed = text.replaceAll(from, to);
      writeFileSync(
        manifest,
        says.startsWith("Install") ? changed.replaceAll("customers-cli-", "customers-elsewhere-") : changed,
      );
      try {
        const { exitCode, stderr } = await run([bin("customers"), "--version"]);
        expect(stderr).toContain(says);
        expect(exitCode).toBe(1);
      } finally {
        writeFileSync(manifest, text);
      }
    });
  }
});
