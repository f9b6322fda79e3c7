/** The clients of docs/clients.md, run as they stand there, against a service where another writer is faster once. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/service/server-process.ts";
import { TestService } from "../support/service/test-service.ts";

const guide = await Bun.file(new URL("../../docs/clients.md", import.meta.url)).text();
const ROOT = new URL("../../..", import.meta.url).pathname;

/** All blocks of a language, joined. */
function code(language: string): string {
  return [...guide.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))]
    .map(([, text = ""]) => text)
    .join("\n")
    .replace('"customers-client"', '"customers/client"'); // the library within this project
}

let service: TestService;
const directory = temporaryDirectory();
beforeAll(async () => {
  service = await TestService.start({ corsOrigins: ["*"] });
});
afterAll(async () => {
  await service.stop();
  directory.remove();
});

/** Stands before the service. After the first read of each customer another writer changes its name. */
class FasterWriter {
  readonly writes: number[] = [];
  readonly #disturbed = new Set<string>();
  readonly #server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => this.#forward(request),
  });
  readonly url = `http://127.0.0.1:${this.#server.port}`;

  async #forward(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const headers = new Headers(request.headers);
    headers.delete("host");
    const body = request.method === "GET" ? null : await request.arrayBuffer();
    const reply = await fetch(`${service.url}${pathname}`, { method: request.method, headers, body });
    if (request.method !== "GET") this.writes.push(reply.status);
    if (request.method === "GET" && !this.#disturbed.has(pathname)) {
      this.#disturbed.add(pathname);
      const ifMatch = { "if-match": reply.headers.get("etag") ?? "" };
      await service.send("PATCH", pathname, { headers: ifMatch, body: { name: "Changed by another" } });
    }
    return new Response(
      await reply.arrayBuffer().then((bytes) => (bytes.byteLength > 0 ? bytes : null)),
      reply,
    );
  }

  stop(): Promise<void> {
    return this.#server.stop(true);
  }
}

type Program = {
  readonly language: string;
  readonly file: string;
  readonly command: readonly string[];
  readonly cwd?: string;
};

const PROGRAMS: Readonly<Record<string, Program & { readonly email: string }>> = {
  bash: { language: "bash", file: "client.sh", command: ["bash", "-eu"], email: "ada@curl.example" },
  zsh: { language: "bash", file: "client.zsh", command: ["zsh", "-f", "-eu"], email: "ada@curl.example" },
  python: {
    language: "python",
    file: "client.py",
    command: ["/usr/bin/python3"],
    email: "ada@python.example",
  },
  js: { language: "js", file: "client.mjs", command: ["node"], email: "ada@fetch.example" },
  ts: {
    language: "ts",
    file: "client.ts",
    command: [process.execPath],
    cwd: ROOT,
    email: "ada@library.example",
  },
};

for (const [name, { language, file, command, cwd, email }] of Object.entries(PROGRAMS)) {
  test(`the ${name} client keeps another writer's change and applies its own`, async () => {
    const { id, path } = await service.customer();
    const faster = new FasterWriter();
    try {
      const program = join(cwd === undefined ? directory.path : join(cwd, "dist"), file);
      writeFileSync(program, code(language));
      const child = Bun.spawn([...command, program], {
        cwd: directory.path,
        env: {
          ...process.env,
          CUSTOMERS_URL: faster.url,
          CUSTOMERS_TOKEN: await service.token(),
          ID: id,
        },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
      expect([await child.exited, stderr]).toEqual([0, ""]);
      expect(stdout).not.toBe("");
      expect(faster.writes[0]).toBe(412);
      expect(faster.writes).toHaveLength(2);
      const { json } = await service.send("GET", path);
      expect(json).toMatchObject({ name: "Changed by another", email });
    } finally {
      await faster.stop();
    }
  });
}

describe("in a page of another origin", () => {
  test("the JavaScript client does the same in Chromium", async () => {
    const { id, path } = await service.customer();
    const token = await service.token();
    const [update = ""] = code("js").split("const { CUSTOMERS_URL");
    const page = `<!doctype html><title>waiting</title><script type="module">${update}
      const url = ${JSON.stringify(`${service.url}/customers/${id}`)};
      update(url, ${JSON.stringify(token)}, () => ({ email: "ada@page.example" })).then(
        (etag) => { document.body.append("done " + etag); },
        (error) => { document.body.append("failed " + error); },
      );</script><body>`;
    const pages = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response(page, { headers: { "content-type": "text/html" } }),
    });
    try {
      const child = Bun.spawn(
        [
          "chromium",
          ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
          ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
          ...[`--user-data-dir=${directory.path}/chromium`, "--virtual-time-budget=10000", "--dump-dom"],
          `http://127.0.0.1:${pages.port}/`,
        ],
        { stdio: ["ignore", "pipe", "ignore"] },
      );
      expect(await child.stdout.text()).toContain('done "');
      const { json } = await service.send("GET", path);
      expect(json.email).toBe("ada@page.example");
    } finally {
      await pages.stop(true);
    }
  });
});
