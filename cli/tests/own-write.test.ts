/** What a command shows and keeps is its own write and the right customer, whatever others do meanwhile. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { runOnTerminal } from "./support/client.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";
import * as faults from "./support/faults.ts";
import { startDeployment as deployment, stopDeployments } from "./support/other-deployment.ts";

let command: string[];
beforeAll(async () => {
  command = [await compiledClient()];
});
afterAll(stopDeployments);

const onTerminal = (url: string, args: string[], keys?: string) =>
  runOnTerminal(args, {
    command,
    env: { CUSTOMERS_URL: url, CUSTOMERS_TOKEN: TOKEN },
    ...(keys === undefined ? {} : { keys, keysAfter: "[y/N]" }),
  });

describe("update --output json prints what this write made", () => {
  test("also when someone else writes before the reply arrives", async () => {
    const { server, customer, update } = await deployment(async (exchange) => {
      const reply = await exchange.forward();
      if (exchange.isWrite) server.change(customer.id, { name: "Theirs" });
      exchange.answer(reply);
    });
    const { exitCode, stdout, stderr } = await update("--name", "Mine", "-o", "json", "--with-etag");
    const { etag, customer: shown } = JSON.parse(stdout);
    expect({ exitCode, name: shown.name }).toEqual({ exitCode: 0, name: "Mine" });
    expect(stderr).toContain(`-> ${etag}`);
    expect(server.read(customer.id)?.name).toBe("Theirs");
  });

  test("and says so where the server does not show it and another version is read", async () => {
    const { server, customer, update } = await deployment(async (exchange) => {
      delete exchange.headers["prefer"];
      const reply = await exchange.forward();
      if (exchange.isWrite) server.change(customer.id, { name: "Theirs" });
      exchange.answer(reply);
    });
    const { exitCode, stdout, stderr } = await update("--name", "Mine", "-o", "value", "--fields", "name");
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "Theirs\n" });
    expect(stderr).toContain("someone else has changed customer");
  });
});

describe("a change by someone else that reapply writes over", () => {
  const interfering = () => {
    const made = deployment(
      faults.interfere(async () => {
        const { server, customer } = await made;
        server.change(customer.id, { name: "Theirs" });
      }),
    );
    return made;
  };

  test("stands in the summary", async () => {
    const { update, state } = await interfering();
    const { exitCode, stderr } = await update("--name", "Mine");
    expect({ exitCode, name: state()?.name }).toEqual({ exitCode: 0, name: "Mine" });
    expect(stderr).toContain('overwrote a change by someone else: name: "Theirs" -> "Mine"');
  });

  test("is not written over on a terminal, where merge is the default", async () => {
    const { proxy, customer, state } = await interfering();
    const update = ["update", customer.id, "--name", "Mine"];
    const { exitCode, screen } = await onTerminal(proxy?.url ?? "", update);
    expect({ exitCode, name: state()?.name }).toEqual({ exitCode: 5, name: "Theirs" });
    expect(screen).toContain('theirs: "Theirs"');
  });
});

test.each([
  ["status=active", 0, undefined],
  ["status=closed", 5, "Ada"],
])(
  "delete --expect %s on a terminal is checked on the customer that is shown",
  async (expected, exit, left) => {
    const { server, customer, state } = await deployment();
    const remove = ["delete", customer.id, "--expect", expected];
    const { exitCode, screen } = await onTerminal(server.url, remove, "y\r");
    expect(screen).toContain("active");
    expect({ exitCode, name: state()?.name }).toEqual({ exitCode: exit, name: left });
  },
);

test("get refuses an answer that shows another customer, as update does", async () => {
  const { server, customer, run, update } = await deployment(async (exchange) => {
    const reply = await exchange.forward();
    const body = new TextDecoder().decode(reply.body).replaceAll(customer.id, other.id);
    exchange.answer({ ...reply, body: new TextEncoder().encode(body) });
  });
  const other = server.add({ name: "Other" });
  for (const { exitCode, stdout, stderr } of [
    await run("get", customer.id),
    await update("--name", "X", "--expect", `id=${customer.id}`),
  ]) {
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain(`the server answered with customer ${other.id}`);
  }
});

test("a list may be compressed on the way, the reading before a write may not", async () => {
  const asked: (string | undefined)[] = [];
  const { run, update } = await deployment(async (exchange) => {
    asked.push(exchange.headers["accept-encoding"]?.toString());
    exchange.answer(await exchange.forward());
  });
  await run("list");
  await update("--name", "Eve");
  expect(asked).toEqual(["gzip, br", "identity", "identity"]);
});

test("text that is not UTF-8 is decoded by its charset, or nothing is written back", async () => {
  for (const [type, exit, name] of [
    ["application/json; charset=iso-8859-1", 0, "Müller"],
    ["application/json", 7, "Ada"],
  ] as const) {
    const { state, update } = await deployment(async (exchange) => {
      const reply = await exchange.forward();
      if (exchange.method !== "GET") return exchange.answer(reply);
      const text = new TextDecoder().decode(reply.body).replace("Ada", "Müller");
      const headers = { ...reply.headers, "content-type": type };
      exchange.answer({ ...reply, headers, body: Buffer.from(text, "latin1") });
    });
    const { exitCode } = await update("--email", "new@example.com");
    expect({ exitCode, name: state()?.name }).toEqual({ exitCode: exit, name });
  }
});
