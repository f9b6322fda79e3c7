import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { runClient, runOnTerminal } from "./support/client.ts";
import { compiledClient } from "./support/executable.ts";

const ODD = `{ "id": "1", "name": "=cmd|' /C calc'!A0", "note": "a,b\\n\\"c\\"", "big": 9007199254740993,
  "rate": 1.10, "e": 1E400, "10": {"b": [1.0, null], "a": "é"}, "wide": "漢字", "evil": "\\u001b[31mred\\u0007" }`;
let command: string[];
let server: ReturnType<typeof Bun.serve>;
beforeAll(async () => {
  command = [await compiledClient()];
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) =>
      new URL(request.url).pathname === "/customers"
        ? new Response(
            `{"items":[{"etag":"\\"1\\"","customer":${ODD}},{"etag":"\\"2\\"","customer":{"id":"2","name":"-5","big":-5}}]}`,
          )
        : new Response(ODD, { headers: { etag: '"tag"' } }),
  });
});
afterAll(() => server.stop(true));

const run = async (...args: string[]) => {
  const { stdout, stderr, exitCode } = await runClient(args, { env: { CUSTOMERS_URL: server.url.origin } });
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout;
};

describe("json", () => {
  test("is the server's own text", async () => {
    expect(await run("get", "1")).toBe(`${ODD}\n`);
  });

  test("wrapped and in lists keeps every number, member and order", async () => {
    const compact =
      `{"id":"1","name":"=cmd|' /C calc'!A0","note":"a,b\\n\\"c\\"","big":9007199254740993,` +
      `"rate":1.10,"e":1E400,"10":{"b":[1.0,null],"a":"é"},"wide":"漢字","evil":"\\u001b[31mred\\u0007"}`;
    expect(await run("get", "1", "--with-etag")).toBe(`{"etag":"\\"tag\\"","customer":${compact}}\n`);
    expect(await run("list")).toBe(`[${compact},\n{"id":"2","name":"-5","big":-5}]\n`);
    expect(await run("list", "-o", "ndjson")).toBe(`${compact}\n{"id":"2","name":"-5","big":-5}\n`);
    expect(await run("list", "--with-etag", "--limit", "1", "--quiet")).toBe(
      `[{"etag":"\\"1\\"","customer":${compact}}]\n`,
    );
  });
});

describe("value", () => {
  test("is bare, and keeps the number as it came", async () => {
    expect(await run("get", "1", "-o", "value", "--fields", "big,rate,wide")).toBe(
      "9007199254740993\t1.10\t漢字\n",
    );
  });

  test("holds a customer a line and a field a column, whatever the values are; printf gives them back", async () => {
    const values = ["evil\n2\tvictim", "a\r\nb", "C:\\new\\table", "\\", "plain"];
    using lines = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.json({ items: values.map((name, at) => ({ id: `${at}`, name })) }),
    });
    const { stdout } = await runClient(["list", "-o", "value", "--fields", "id,name"], {
      env: { CUSTOMERS_URL: lines.url.origin },
    });
    const rows = stdout.trimEnd().split("\n");
    expect(rows.map((row) => row.split("\t").length)).toEqual(values.map(() => 2));
    for (const [at, value] of values.entries()) {
      const cell = rows[at]?.split("\t")[1] ?? "";
      const printed = Bun.spawn(["bash", "-c", `printf %b "$1"`, "bash", cell], { stdout: "pipe" });
      expect(await printed.stdout.text()).toBe(value);
    }
  });

  test("of a member that did not come: exit 1, and did you mean", async () => {
    const { exitCode, stderr, stdout } = await runClient(["get", "1", "-o", "value", "--fields", "nme"], {
      env: { CUSTOMERS_URL: server.url.origin },
    });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain('Did you mean "name"?');
  });
});

test("csv quotes by RFC 4180, makes formulas text, leaves numbers alone", async () => {
  expect(await run("list", "-o", "csv", "--with-etag")).toBe(
    "etag,id,name,note,big,rate,e,10,wide,evil\n" +
      `"""1""",1,'=cmd|' /C calc'!A0,"a,b\n""c""",9007199254740993,1.10,1E400,"{""b"":[1.0,null],""a"":""é""}",漢字,\u001b[31mred\u0007\n` +
      `"""2""",2,'-5,,-5,,,,,\n`,
  );
});

test.each(["value", "csv", "json", "ndjson"])("%s steers no terminal either", async (format) => {
  const { screen } = await runOnTerminal(["list", "-o", format, "--url", server.url.origin]);
  expect(screen).toContain("red");
  for (const control of ["\u001b", "\u0007"]) expect(screen).not.toContain(control);
});

describe("table", () => {
  test("is aligned by width, a customer a line, and no escape of the data reaches the terminal", async () => {
    const { screen } = await runOnTerminal(["get", "1", "--url", server.url.origin]);
    expect(screen).toContain("\u001b[1mwide\u001b[0m  漢字");
    expect(screen).toContain("\\u{1b}[31mred\\u{7}");
    expect(screen).not.toContain("\u001b[31m");
    expect(screen).toContain("9007199254740993");
  });

  test.each([
    ["NO_COLOR", { NO_COLOR: "1" }],
    ["TERM=dumb", { TERM: "dumb" }],
  ])("has no colour with %s", async (_, env) => {
    const { screen } = await runOnTerminal(["get", "1", "--url", server.url.origin], { env });
    expect(screen).not.toContain("\u001b[1m");
  });

  test("has colour in a pipe with FORCE_COLOR alone", async () => {
    const forced = await runClient(["get", "1", "-o", "table", "--url", server.url.origin], {
      env: { FORCE_COLOR: "1" },
    });
    expect(forced.stdout).toContain("\u001b[1m");
    expect(await run("get", "1", "-o", "table")).not.toContain("\u001b[");
  });
});

test("a terminal that reports 0 columns has 80", async () => {
  const narrow = ["sh", "-c", 'stty columns 0; exec "$@"', "sh", ...command];
  const args = ["list", "--url", server.url.origin];
  const [zero, eighty] = [
    await runOnTerminal(args, { command: narrow }),
    await runOnTerminal(args, { command, cols: 80 }),
  ];
  expect(zero).toEqual(eighty);
});
