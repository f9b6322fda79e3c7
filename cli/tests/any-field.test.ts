/** Field names are the server's business: --set, --set-json and --unset of create and update, and `api`. */
import { afterAll, describe, expect, test } from "bun:test";
import { runOnTerminal } from "./support/client.ts";
import { TOKEN } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";
import { startDeployment, stopDeployments } from "./support/other-deployment.ts";

afterAll(stopDeployments);

const bodyOf = (stdout: string) => JSON.parse(stdout).request.body;

describe("update", () => {
  test("--set writes a field by its name", async () => {
    const { update, state } = await startDeployment();
    expect(await update("--set", "status=suspended", "--set", "name=A=B")).toMatchObject({ exitCode: 0 });
    expect(state()).toMatchObject({ status: "suspended", name: "A=B" });
  });

  test("any field and any JSON value go to the server as they are; --unset removes by null", async () => {
    const { update } = await startDeployment();
    const args = [
      "--set",
      "city=Paris",
      "--set-json",
      "limit=1.10",
      "--set-json",
      "tags=[1,null]",
      "--unset",
      "fax",
    ];
    const { exitCode, stdout } = await update(...args, "--dry-run", "-o", "json");
    expect(exitCode).toBe(0);
    expect(stdout).toContain("1.10");
    expect(bodyOf(stdout)).toEqual({ city: "Paris", limit: 1.1, tags: [1, null], fax: null });
  });

  test.each([
    ["a field twice", ["--name", "A", "--set", "NAME=B"], "given twice"],
    ["a named option twice", ["--name", "A", "--name", "B"], "given twice"],
    ["a value that is no JSON", ["--set-json", "limit=many"], "is not JSON"],
    ["no value", ["--set", "limit"], "FIELD=VALUE"],
    ["nothing", [], "nothing to change"],
  ])("%s is refused before anything is sent", async (_, args, words) => {
    const { update, server } = await startDeployment();
    const { exitCode, stderr } = await update(...args);
    expect([exitCode, server.requests]).toEqual([2, []]);
    expect(stderr).toContain(words);
  });
});

describe("create", () => {
  test("--set gives what the named options give", async () => {
    const { run, server } = await startDeployment();
    const { exitCode, stdout } = await run(
      "create",
      "--set",
      "name=Bea",
      "--set",
      "email=bea@example.com",
      "-o",
      "json",
    );
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ name: "Bea", email: "bea@example.com" });
    expect(server.size).toBe(2);
  });

  test("without name and email, and without --set, nothing is sent", async () => {
    const { run, server } = await startDeployment();
    const { exitCode, stderr } = await run("create", "--name", "Bea");
    expect([exitCode, server.requests]).toEqual([2, []]);
    expect(stderr).toContain("--email");
  });
});

describe("api", () => {
  test("sends one request with the credentials, and prints the body, or the headers too", async () => {
    const { run, customer } = await startDeployment();
    const plain = await run("api", "GET", `/customers/${customer.id}?fields=name`);
    expect(plain).toMatchObject({ exitCode: 0, stdout: '{"name":"Ada"}', stderr: "" });
    const whole = await run("api", "GET", `/customers/${customer.id}`, "-i");
    expect(whole.stdout).toStartWith("200\n");
    expect(whole.stdout).toContain(`etag: ${customer.tag}\n`);
  });

  test("writes with --input and --if-match; a refusal prints its body and has the exit code of its status", async () => {
    const { run, customer, state, server } = await startDeployment();
    const file = `${import.meta.dir}/any-field.json`;
    await Bun.write(file, '{"name":"Raw","email":"raw@example.com"}');
    const path = `/customers/${customer.id}`;
    const missing = await run("api", "PUT", path, "--input", file);
    const written = await run("api", "PUT", path, "--input", file, "--if-match", customer.tag);
    const stale = await run("api", "PUT", path, "--input", file, "--if-match", customer.tag);
    await Bun.file(file).delete();
    expect(missing.exitCode).toBe(6);
    expect(missing.stderr).toContain("--if-match TAG");
    expect(missing.stderr).not.toContain("proxy");
    expect(JSON.parse(missing.stdout)).toMatchObject({ code: "precondition-required" });
    expect([written.exitCode, state()?.name]).toEqual([0, "Raw"]);
    expect(stale.exitCode).toBe(5);
    expect(server.requests.map(({ status }) => status)).toEqual([428, server.dialect.writeStatus, 412]);
  });

  test.each([
    ["another server", ["api", "GET", "http://127.0.0.1:1/customers"]],
    ["another server without a scheme", ["api", "GET", "//127.0.0.1:1/customers"]],
    ["a path with a line end", ["api", "GET", "/customers/x\nX: y"]],
    ["a path with a space", ["api", "GET", "/customers/a b"]],
    ["a method of no service", ["api", "BREW", "/customers"]],
    ["a body that is not there", ["api", "POST", "/customers", "--input", "/dev/null/none"]],
  ])("%s is refused, and no request is sent", async (_, args) => {
    const { run, server } = await startDeployment();
    expect([(await run(...args)).exitCode, server.requests]).toEqual([2, []]);
  });

  test("on a terminal, the body ends with a line end", async () => {
    const { server } = await startDeployment();
    const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN };
    const { screen } = await runOnTerminal(["api", "GET", "/customers?limit=1&fields=name"], { env });
    expect(screen).toEndWith('"next":null}\r\n');
  });

  test.each([502, 503, 202, 302])("%d to a write that was applied: not said to be undone", async (status) => {
    const { run, customer, server } = await startDeployment(
      faults.firstWrite(async (exchange) => {
        await exchange.forward();
        exchange.answer({ status, headers: {}, body: new Uint8Array() });
      }),
    );
    const path = `/customers/${customer.id}`;
    const { exitCode, stderr } = await run("api", "DELETE", path, "--if-match", customer.tag);
    expect({ exitCode, writes: server.writes.length }).toEqual({
      exitCode: status === 202 ? 0 : 8,
      writes: 1,
    });
    expect(stderr).not.toContain("not done");
  });

  test("a write whose reply is lost is an unknown outcome", async () => {
    const { run, customer } = await startDeployment(faults.dropReplies());
    const ended = await run("api", "DELETE", `/customers/${customer.id}`, "--if-match", customer.tag);
    expect(ended.exitCode).toBe(8);
  });
});

describe("watch", () => {
  test("prints each version once, and ends when --until holds", async () => {
    const { run, server, customer } = await startDeployment();
    const running = run(
      "watch",
      customer.id,
      "--until",
      "status=suspended",
      "--interval",
      "20ms",
      "--timeout",
      "60",
    );
    while (server.requests.length === 0) await Bun.sleep(5);
    server.change(customer.id, { name: "Second" });
    while (server.requests.at(-1)?.status !== 304) await Bun.sleep(5);
    server.change(customer.id, { status: "suspended" });
    const { exitCode, stdout } = await running;
    expect(exitCode).toBe(0);
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)).toMatchObject({ name: "Second", status: "suspended" });
    expect(new Set(stdout.trimEnd().split("\n")).size).toBe(lines.length);
    expect(server.requests.at(-1)?.headers["if-none-match"]).toMatch(/^"/);
  });

  test.each([
    ["without --until: done", [], 0],
    ["with --until: exit 1", ["--until", "status=closed"], 1],
  ])("--timeout ends it, %s", async (_, args, exitCode) => {
    const { run, customer } = await startDeployment();
    const ended = await run("watch", customer.id, "--interval", "10ms", "--timeout", "300ms", ...args);
    expect(ended.exitCode).toBe(exitCode);
  });

  test("a customer that is deleted ends it with exit 4", async () => {
    const { run, server, customer } = await startDeployment();
    const running = run("watch", customer.id, "--interval", "20ms", "--timeout", "60");
    while (server.requests.length === 0) await Bun.sleep(5);
    server.change(customer.id, "delete");
    expect((await running).exitCode).toBe(4);
  });
});
