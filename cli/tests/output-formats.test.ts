/** --output of the commands that print facts of this program, not customers. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runClient, runOnTerminal, temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";

const server = startCustomerServer();
const home = temporaryDirectory();
afterAll(async () => {
  await server.stop();
  home[Symbol.dispose]();
});
const { id } = server.add({ name: "Ada" });
mkdirSync(join(home.path, ".config/customers"), { recursive: true });
writeFileSync(
  join(home.path, ".config/customers/config.toml"),
  `current = "a"\n[profiles.a]\nurl = "${server.url}"\n[profiles.b]\nurl = "http://b.example"\nprotected = true\n`,
  { mode: 0o600 },
);
const env = { CUSTOMERS_TOKEN: TOKEN, CUSTOMERS_UNDO: "1d", XDG_STATE_HOME: join(home.path, "state") };
const run = (...args: string[]) => runClient(args, { home: home.path, env });
const printed = async (...args: string[]) => {
  const { exitCode, stdout, stderr } = await run("--quiet", ...args);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout;
};

describe("a list", () => {
  test("of profiles is written in every format", async () => {
    const [a, b] = [
      { name: "a", url: server.url, current: true, protected: false },
      { name: "b", url: "http://b.example", current: false, protected: true },
    ];
    const list = (format: string) => printed("profile", "list", "-o", format);
    expect(await list("json")).toBe(`[${JSON.stringify(a)},\n${JSON.stringify(b)}]\n`);
    expect(await list("ndjson")).toBe(`${JSON.stringify(a)}\n${JSON.stringify(b)}\n`);
    expect(await list("csv")).toBe(
      `name,url,current,protected\na,${server.url},true,false\nb,http://b.example,false,true\n`,
    );
    expect(await list("value")).toBe(`a\t${server.url}\ttrue\tfalse\nb\thttp://b.example\tfalse\ttrue\n`);
    expect(await list("table")).toStartWith("name  url");
  });

  test.each([
    [["config"], "setting,value,from"],
    [["undo", "--list"], "id,change,fields,written,expires"],
    [["doctor"], "check,verdict,found,fix"],
  ])("of %p has a line of JSON, of CSV and of values for each row", async (command, heading) => {
    await printed("update", id, "--name", crypto.randomUUID(), "--yes");
    const linesOf = async (format: string) => (await printed(...command, "-o", format)).trimEnd().split("\n");
    const rows = (await linesOf("ndjson")).map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(rows.length).toBeGreaterThan(0);
    expect(Object.keys(rows[0] ?? {}).join(",")).toBe(heading);
    const [first, ...csv] = await linesOf("csv");
    expect({ first, rows: csv.length }).toEqual({ first: heading, rows: rows.length });
    const [values = ""] = await linesOf("value");
    expect(values.split("\t")).toEqual(Object.values(rows[0] ?? {}).map(String));
  });

  test("that is empty keeps its heading in CSV", async () => {
    const nowhere = temporaryDirectory();
    const { stdout } = await runClient(["profile", "list", "-o", "csv"], { home: nowhere.path });
    nowhere[Symbol.dispose]();
    expect(stdout).toBe("name,url,current,protected\n");
  });
});

test.each([[["whoami"]], [["profile", "show"]]])(
  "a record, of %p, is written in every format",
  async (words) => {
    const json = await printed(...words, "-o", "json");
    const record = JSON.parse(json) as Record<string, unknown>;
    expect(await printed(...words, "-o", "ndjson")).toBe(json);
    const [heading, row, ...more] = (await printed(...words, "-o", "csv")).trimEnd().split("\n");
    expect({ heading, more }).toEqual({ heading: Object.keys(record).join(","), more: [] });
    expect(row).toContain(server.url);
    expect((await printed(...words, "-o", "value")).trimEnd().split("\t")).toEqual(
      Object.values(record).map(String),
    );
  },
);

describe("doctor", () => {
  test("prints JSON into a pipe, as --help says of every command, and a table on a terminal", async () => {
    expect(JSON.parse(await printed("doctor"))[0]).toMatchObject({
      check: "settings",
      verdict: "ok",
      fix: null,
    });
    const { screen } = await runOnTerminal(["doctor"], { home: home.path, env });
    expect(screen).toContain("ok       settings");
    expect(await printed("doctor", "-o", "table")).toStartWith("ok       settings");
  });
});

describe("--result", () => {
  test("is one line of NDJSON on a terminal too", async () => {
    const args = ["update", id, "--name", "Eve", "--yes", "--quiet", "--result", "-o", "ndjson"];
    const { screen } = await runOnTerminal(args, { home: home.path, env });
    const lines = screen.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ id, result: "updated" }]);
  });

  test.each([
    [["create", "--name", "Eve", "--email", "e@example.com"]],
    [["update", id, "--name", "Never"]],
    [["delete", id, "--yes"]],
  ])("of %p is refused as CSV and as bare values, before anything is sent", async (args) => {
    for (const format of ["csv", "value"]) {
      const sent = server.requests.length;
      const { exitCode, stdout, stderr } = await run(...args, "--result", "-o", format);
      expect({ exitCode, stdout, sent: server.requests.length }).toEqual({ exitCode: 2, stdout: "", sent });
      expect(stderr).toContain("table, json or ndjson");
    }
  });
});
