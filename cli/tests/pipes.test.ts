/** Pipes in place of files: they are read and written as files are, and a command that waits for one can be interrupted. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { bulkPlace, stopBulkPlaces } from "./support/bulk-place.ts";
import { makeCertificates } from "./support/certificates.ts";
import { TOKEN } from "./support/dialect.ts";

afterAll(stopBulkPlaces);

async function place() {
  const it = await bulkPlace();
  const pipe = join(it.directory, "pipe");
  const profileFile = join(it.directory, ".config/customers/config.toml");
  mkdirSync(dirname(profileFile), { recursive: true, mode: 0o700 });
  return {
    ...it,
    pipe,
    profileFile,
    /** Standard input is open, and nothing comes from it. */
    start: (args: string[], env: Record<string, string> = {}) =>
      Bun.spawn([...it.command, ...args], {
        env: { PATH: process.env["PATH"] ?? "", HOME: it.directory, ...it.env, ...env },
        stdin: "pipe",
        stdout: "pipe",
        stderr: "pipe",
      }),
  };
}

async function makePipe(path: string): Promise<void> {
  expect(await Bun.spawn(["mkfifo", "-m", "600", path]).exited).toBe(0);
}

/** Prints a line once somebody reads the pipe, writes `text` to it, and then leaves it open or closes it. */
function startWriter(path: string, text: string, then: "exec sleep 60" | "exit") {
  return Bun.spawn(["sh", "-c", `exec 3> "$1"; echo open; printf %s "$2" >&3; ${then}`, "sh", path, text], {
    stdout: "pipe",
  });
}

async function firstText(stream: ReadableStream<Uint8Array>): Promise<string> {
  const { value } = await stream.getReader().read();
  return new TextDecoder().decode(value);
}

describe("SIGTERM ends a command that waits", () => {
  test.each([
    ["for a token", ["list", "--token-file", "PIPE"]],
    ["for a token to store", ["login", "--store", "file", "--token-file", "PIPE"]],
    ["for certificates", ["list", "--cacert", "PIPE"]],
    ["for a client certificate", ["list", "--cert", "PIPE"]],
    ["for a body", ["api", "POST", "/customers", "--yes", "--input", "PIPE"]],
  ])("%s", async (_, args) => {
    const { server, pipe, start } = await place();
    await makePipe(pipe);
    await interrupted(start(args.map((word) => (word === "PIPE" ? pipe : word))), pipe);
    expect(server.requests).toHaveLength(0);
  });

  test.each([
    ["get", ["get", "1"]],
    ["profile list", ["profile", "list"]],
    ["login", ["login"]],
    ["completion", ["__complete", "--", "list", "--profile", ""]],
  ])("for the profile file: %s", async (_, args) => {
    const { server, profileFile, start } = await place();
    await makePipe(profileFile);
    await interrupted(start(args), profileFile);
    expect(server.requests).toHaveLength(0);
  });

  type Child = ReturnType<Awaited<ReturnType<typeof place>>["start"]>;

  async function interrupted(child: Child, pipe: string): Promise<void> {
    const writer = startWriter(pipe, "", "exec sleep 60");
    try {
      expect(await firstText(writer.stdout)).toBe("open\n");
      child.kill("SIGTERM");
      expect([await child.exited, await child.stderr.text()]).toEqual([
        130,
        expect.stringContaining("interrupted; nothing was sent"),
      ]);
    } finally {
      child.kill("SIGKILL");
      writer.kill();
      await writer.exited;
    }
  }

  // Nobody opens the other end, so opening the pipe never ends. The warning is printed before it begins.
  test.each([
    ["for its standard input", ["api", "POST", "/customers", "--yes", "--input", "-"]],
    ["for ids on its standard input", ["get", "-"]],
    ["for somebody who reads its export", ["export", "PIPE"]],
    ["for somebody who writes its body", ["api", "POST", "/customers", "--yes", "--input", "PIPE"]],
    ["for somebody who writes the token to store", ["login", "--store", "file", "--token-file", "PIPE"]],
  ])("%s", async (_, args) => {
    const { server, pipe, start } = await place();
    await makePipe(pipe);
    const child = start(["--insecure", ...args.map((word) => (word === "PIPE" ? pipe : word))]);
    try {
      let stderr = "";
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
        if (stderr === "") child.kill("SIGTERM");
        stderr += text;
      }
      expect(stderr).toStartWith("warning: --insecure");
      expect(stderr).toContain("interrupted; nothing was sent");
      expect(await child.exited).toBe(130);
    } finally {
      child.kill("SIGKILL");
    }
    expect(server.requests).toHaveLength(0);
  });
});

describe("SIGTERM ends a command whose output nobody reads on, and the error says that it is incomplete", () => {
  test.each([
    ["standard output", `exec "$@" > "$PIPE"`, []],
    ["the file of an export", `exec "$@"`, ["PIPE"]],
  ])("%s", async (_, script, file) => {
    const { server, env, directory, pipe, command } = await place();
    for (let at = 0; at < 500; at += 1) server.add({ name: `Ada ${"x".repeat(500)}` });
    await makePipe(pipe);
    // A page is longer than what a pipe holds, so after one byte the writer waits for the reader.
    const byte = `exec 3< "$1"; head -c 1 <&3; exec sleep 60`;
    const reader = Bun.spawn(["sh", "-c", byte, "sh", pipe], { stdout: "pipe" });
    const words = [...command, "export", "--format", "ndjson", ...file.map(() => pipe)];
    const child = Bun.spawn(["sh", "-c", script, "sh", ...words], {
      env: { PATH: process.env["PATH"] ?? "", HOME: directory, PIPE: pipe, ...env },
      stderr: "pipe",
    });
    try {
      expect(await firstText(reader.stdout)).toBe("{");
      child.kill("SIGTERM");
      expect([await child.exited, await child.stderr.text()]).toEqual([
        130,
        expect.stringContaining("written: interrupted while nobody read it"),
      ]);
    } finally {
      child.kill("SIGKILL");
      reader.kill();
      await reader.exited;
    }
  });
});

test("a token and certificates are read from pipes of the shell", async () => {
  const { server, env, directory, file, command } = await place();
  server.add({ name: "Ada" });
  const script = `exec 5< <(cat "$2"); "$1" list -o json --token-file <(echo "$3") --cacert /dev/fd/5`;
  const words = [...command, file("ca.pem", makeCertificates().ca), TOKEN];
  const child = Bun.spawn(["bash", "-c", script, "bash", ...words], {
    env: { PATH: process.env["PATH"] ?? "", HOME: directory, CUSTOMERS_URL: env.CUSTOMERS_URL },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [exitCode, stdout, stderr] = [
    await child.exited,
    await child.stdout.text(),
    await child.stderr.text(),
  ];
  expect([exitCode, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("Ada");
});

test("--timeout is for the server: the wait for a pipe does not count", async () => {
  const { pipe, start } = await place();
  await makePipe(pipe);
  const slow = `exec 3> "$1"; sleep 0.2; printf %s "$2" >&3`;
  const writer = Bun.spawn(["sh", "-c", slow, "sh", pipe, TOKEN]);
  const child = start(["config", "--token-file", pipe, "--timeout", "1ms"]);
  expect([await child.exited, await child.stdout.text()]).toEqual([0, expect.stringContaining("token-file")]);
  await writer.exited;
});

describe("a profile file that is a pipe", () => {
  const profile = '[profiles.shop]\nurl = "https://shop.example"\n';

  test("is read", async () => {
    const { profileFile, start } = await place();
    await makePipe(profileFile);
    const writer = startWriter(profileFile, profile, "exit");
    const child = start(["config", "--profile", "shop"], { CUSTOMERS_URL: "" });
    expect([await child.exited, await child.stdout.text()]).toEqual([
      0,
      expect.stringContaining("https://shop.example"),
    ]);
    await writer.exited;
  });

  test("is not changed, and the error says what to do", async () => {
    const { profileFile, start } = await place();
    await makePipe(profileFile);
    const writer = startWriter(profileFile, profile, "exit");
    const child = start(["profile", "set", "other", "--url", "https://other.example"]);
    const [exitCode, stderr] = [await child.exited, await child.stderr.text()];
    await writer.exited;
    expect(exitCode).toBe(2);
    expect(stderr).toContain("is not a regular file, and can't be changed");
    expect(statSync(profileFile).isFIFO()).toBe(true);
  });
});

describe.each([
  ["a pipe", makePipe],
  ["a socket", async (path: string) => void Bun.listen({ unix: path, socket: { data() {} } }).unref()],
  ["a directory", async (path: string) => void mkdirSync(path)],
])("%s where a regular file is needed is refused at once, and stays", (_, make) => {
  test.each([
    ["--journal", "it", ["import", "rows.csv", "--journal", "it"], "it is not a regular file"],
    ["the journal beside the input", "rows.csv.journal", ["import", "rows.csv"], "is not a regular file"],
    ["--failed", "it", ["import", "rows.csv", "--failed", "it"], "Name a file that does not exist"],
    ["the undo journal", "customers/undo.sqlite", ["delete", "1", "--yes"], "is not a regular file"],
    ["the undo journal that is read", "customers/undo.sqlite", ["undo", "--list"], "is not a regular file"],
    [
      "the profile file's lock",
      "customers/config.toml.lock",
      ["profile", "use", "a"],
      "is not a regular file",
    ],
  ])("as %s", async (_, name, args, words) => {
    const { server, env, directory, command, file } = await place();
    file("rows.csv", "name,email\nAda,ada@example.com\n");
    mkdirSync(join(directory, "customers"), { mode: 0o700 });
    const path = join(directory, name);
    await make(path);
    const before = statSync(path);
    const child = Bun.spawn([...command, ...args], {
      cwd: directory,
      env: {
        HOME: directory,
        XDG_STATE_HOME: directory,
        XDG_CONFIG_HOME: directory,
        CUSTOMERS_UNDO: "7d",
        ...env,
      },
      stdin: "ignore",
      stderr: "pipe",
    });
    const [exitCode, stderr] = [await child.exited, await child.stderr.text()];
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(words)]);
    expect(stderr).toContain(name);
    const { mode, ino } = statSync(path);
    expect({ mode, ino }).toEqual({ mode: before.mode, ino: before.ino });
    expect(server.requests).toHaveLength(0);
  });
});
