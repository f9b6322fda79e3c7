/** stdout and stderr as shells give them: pipes that close early, pipes that are slow, nothing at all. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { RUNTIME } from "./support/client.ts";
import { compiledClient } from "./support/executable.ts";

const SIZE = 10 * 1024 * 1024;
const body = JSON.stringify({ id: "1", name: "x".repeat(SIZE), email: "a@example.com" });
const page = JSON.stringify({
  items: Array.from({ length: 200 }, (_, at) => ({ id: `${at}`, name: "Ada" })),
});
let server: ReturnType<typeof Bun.serve>;

let customers: string;
beforeAll(async () => {
  customers = await compiledClient();
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (request.method === "POST") return new Response('{"id":"7"}', { status: 201 });
      if (request.headers.has("if-none-match")) return new Response(null, { status: 304 });
      if (pathname.startsWith("/customers/")) return new Response(body, { headers: { etag: '"1"' } });
      // A list that never ends: only a reader that leaves can end it.
      const next = Number(searchParams.get("at") ?? 0) + 1;
      return new Response(page, { headers: { link: `</customers?at=${next}>; rel="next"` } });
    },
  });
});
afterAll(() => server.stop(true));

/** `customers` in the script is the client; the exit code is that of the first command of the pipe. */
async function shell(script: string) {
  const child = Bun.spawn(
    ["bash", "-c", `customers() { '${customers}' --url '${server.url.origin}' "$@"; }\n${script}`],
    {
      // Of nobody's own profiles: where none is, none is read.
      env: { ...RUNTIME, PATH: process.env["PATH"] ?? "", HOME: "/nonexistent" },
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const [stdout, stderr, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return { stdout: stdout.trim(), stderr: stderr.trim(), exitCode };
}

describe("stdout", () => {
  test.each([
    ["a fast reader", "customers get 1 | cat | wc -c"],
    ["a reader that begins late", "customers get 1 | { sleep 0.5; cat; } | wc -c"],
  ])("10 MB arrive whole: %s", async (_, script) => {
    expect(await shell(script)).toEqual({ stdout: String(body.length + 1), stderr: "", exitCode: 0 });
  });

  test.each([
    ["get", "customers get 1 | head -c 9", '{"id":"1"'],
    ["an endless list", "customers list --all -o ndjson | head -c 9", '{"id":"0"'],
    ["an endless list of values", "customers list --all -o value | head -c 5", "0\tAda"],
    ["an endless CSV", "customers list --all -o csv | head -c 7", "id,name"],
    ["an endless table", "customers list --all -o table | head -c 2", "id"],
    ["an endless array", "customers list --all | head -c 10", '[{"id":"0"'],
  ])("a reader that leaves ends it quietly with exit 0: %s", async (_, script, start) => {
    const run = await shell(`${script}; echo " \${PIPESTATUS[0]}"`);
    expect(run).toEqual({ stdout: `${start} 0`, stderr: "", exitCode: 0 });
  });

  test.if(process.platform === "linux").each([
    ["stdout", "customers get 1; "],
    ["stderr", "customers get 1 --url ftp://x; "],
  ])("%s: a pipe stays blocking for the next program that writes to it", async (_, script) => {
    const { stdout } = await shell(`{ ${script} grep flags: /proc/self/fdinfo/1; } 2>&1 | tail -n 1`);
    expect(stdout).toBe("flags:\t01");
  });

  test.if(process.platform === "linux")(
    "10 MB arrive whole in a pipe that another program left non-blocking",
    async () => {
      const nonBlocking = `'${process.execPath}' -e 'process.stdout.write("")'; grep flags: /proc/self/fdinfo/3 3>&1 >&2`;
      const run = await shell(`{ ${nonBlocking}; customers get 1; } | { sleep 0.5; cat; } | wc -c`);
      expect(run).toEqual({ stdout: String(body.length + 1), stderr: "flags:\t04001", exitCode: 0 });
    },
  );

  test.if(process.platform === "linux")("closed is reported, with exit 1", async () => {
    const { stderr, exitCode } = await shell("customers get 1 >&-");
    expect(stderr).toBe("customers: the output could not be written: stdout is closed");
    expect(exitCode).toBe(1);
  });

  test.each([
    ["customers get 1 >/dev/null"],
    ["customers get 1 1<>/dev/null"],
    // With nothing to print, nothing is lost.
    ["customers get 1 --if-none-match '\"1\"' >&-"],
  ])("%s ends with 0", async (script) => {
    expect(await shell(script)).toEqual({ stdout: "", stderr: "", exitCode: 0 });
  });

  test("full after a creation: what was created is said, whatever notes are wanted", async () => {
    for (const more of ["", "--quiet", "-o json"]) {
      const { stderr, exitCode } = await shell(`customers create --name A --email a@b ${more} >/dev/full`);
      expect(exitCode).toBe(1);
      expect(stderr).toContain("customer 7 created: 1 attempt");
    }
  });

  test("full is told, with exit 1", async () => {
    const { stderr, exitCode } = await shell("customers get 1 >/dev/full");
    expect(exitCode).toBe(1);
    expect(stderr).toContain("the output could not be written: ENOSPC");
  });
});

describe("stderr", () => {
  test.each([
    ["closed", "customers get 1 --url ftp://x 2>&-", 2],
    ["full", "customers get 1 --url ftp://x 2>/dev/full", 2],
    ["closed, with success", "customers get 1 2>&- | wc -c", 0],
  ])("%s changes no exit code", async (_, script, exitCode) => {
    expect((await shell(script)).exitCode).toBe(exitCode);
  });
});
