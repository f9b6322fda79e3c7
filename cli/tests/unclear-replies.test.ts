/**
 * Replies to writes that come, and do not say what a customer service says: a gateway's 503, a proxy's page.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { openCustomers } from "../client/customers.ts";
import { TOKEN } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";
import type { Exchange } from "./support/faulty-proxy.ts";
import { startDeployment as deployment, stopDeployments } from "./support/other-deployment.ts";

afterAll(stopDeployments);

const ALWAYS = Number.POSITIVE_INFINITY;

describe.concurrent("503", () => {
  test("503 to every write, nothing applied: not served, and nothing was written", async () => {
    const { server, update } = await deployment(
      faults.answerInstead(503, { which: "writes", times: ALWAYS }),
    );
    const { exitCode } = await update("--name", "Mine", "--max-attempts", "3");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 7, writes: 0 });
  });

  const made = (headers: Record<string, string>) =>
    faults.firstWrite(async (exchange) => {
      await exchange.forward();
      exchange.answer({ status: 503, headers, body: new Uint8Array() });
    });

  test.each([[{}], [{ "retry-after": "0" }]])(
    "503 with %j to a creation that was made: not sent again",
    async (headers) => {
      const { server, run } = await deployment(made(headers));
      const { exitCode } = await run("create", "--name", "Eve", "--email", "eve@example.com");
      expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 8, writes: 1 });
    },
  );

  test.each([[{}], [{ "retry-after": "0" }]])(
    "503 with %j to an update that was made: found as wanted, and under a claim not said to be someone else's",
    async (headers) => {
      for (const [claim, code] of [
        [[], 0],
        [["--expect", "name=Ada"], 8],
      ] as const) {
        const { server, update } = await deployment(made(headers));
        const { exitCode, stderr } = await update("--name", "Eve", ...claim);
        expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: code, writes: 1 });
        expect(stderr).toContain("is not known");
      }
    },
  );
});

describe.concurrent("a proxy's page", () => {
  const page = {
    status: 200,
    headers: { "content-type": "text/html" },
    body: new TextEncoder().encode("<!doctype html><title>Sign on</title>"),
  };

  test("a page with 200 in place of the service's answer: not believed, read, and sent again", async () => {
    const { server, update, remove } = await deployment(
      faults.firstWrite((exchange) => exchange.answer(page)),
    );
    const { exitCode, stderr } = await update("--name", "Eve");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 0, writes: 1 });
    expect(stderr).toContain("2 attempts, 0 conflicts");
    expect((await remove()).exitCode).toBe(0);
    expect(server.writes).toHaveLength(2);
  });

  test("a page with 200, and the write applied all the same: as wanted, and not claimed", async () => {
    for (const [args, code] of [
      [[], 0],
      [["--expect", "name=Ada"], 8],
    ] as const) {
      const { server, update } = await deployment(
        faults.firstWrite(async (exchange) => {
          await exchange.forward();
          exchange.answer(page);
        }),
      );
      const { exitCode, stderr } = await update("--name", "Eve", ...args);
      expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: code, writes: 1 });
      expect(stderr).toContain("is not known");
    }
  });

  test("a page with 200 to every write: nothing came of it, which is said, and soon", async () => {
    const { server, proxy, update, run } = await deployment((exchange) =>
      exchange.isWrite ? exchange.answer(page) : faults.slow(0)(exchange),
    );
    const { exitCode, stderr } = await update("--name", "Eve");
    expect({ exitCode, writes: server.writes.length, sent: proxy?.writesSeen }).toEqual({
      exitCode: 1,
      writes: 0,
      sent: 3,
    });
    expect(stderr).toContain("200 with text/html");
    const created = await run("create", "--name", "Eve", "--email", "eve@example.com");
    expect(created.exitCode).toBe(8);
    expect(created.stderr).toContain("--idempotency-key");
  });
});

describe.concurrent("a success that is not yet one", () => {
  const taken = { status: 202, headers: {}, body: new Uint8Array() };
  const job = {
    status: 200,
    headers: { "content-type": "application/json" },
    body: new TextEncoder().encode('{"job":"7"}'),
  };

  test.each([
    ["update", ["--name", "Eve"]],
    ["update", ["--status", "closed"]],
    ["update", ["--name", "Eve", "--expect", "name=Ada"]],
    ["delete", ["--yes"]],
  ])("202 to %s %j, and never applied: unknown, sent once", async (command, args) => {
    const { proxy, customer, run } = await deployment((exchange) =>
      exchange.isWrite ? exchange.answer(taken) : faults.slow(0)(exchange),
    );
    const { exitCode, stderr } = await run(command, customer.id, ...args, "--timeout", "6");
    expect({ exitCode, sent: proxy?.writesSeen }).toEqual({ exitCode: 8, sent: 1 });
    expect(stderr).toContain("the server answered 202");
    expect(stderr).not.toMatch(/was not (?:updated|deleted)/);
  });

  test.each([
    ["update", ["--name", "Eve"], "is as wanted"],
    ["delete", ["--yes"], "is as wanted"],
  ])("202 to %s, and applied when it has been looked at: waited for", async (command, args, words) => {
    let left: (() => Promise<unknown>) | undefined;
    let looks = 0;
    const { server, customer, run } = await deployment(async (exchange) => {
      if (exchange.isWrite) {
        left = () => exchange.forward();
        return exchange.answer(taken);
      }
      if (left !== undefined) looks += 1;
      if (looks === 3) await left?.();
      exchange.answer(await exchange.forward());
    });
    const { exitCode, stderr } = await run(command, customer.id, ...args);
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 0, writes: 1 });
    expect(stderr).toContain(words);
  });

  test("200 with a job to every write: it may still come, so nobody says that it was not", async () => {
    const { proxy, update } = await deployment((exchange) =>
      exchange.isWrite ? exchange.answer(job) : faults.slow(0)(exchange),
    );
    const { exitCode, stderr } = await update("--name", "Eve");
    expect({ exitCode, sent: proxy?.writesSeen }).toEqual({ exitCode: 8, sent: 3 });
    expect(stderr).not.toContain("was not updated");
  });

  describe.each([
    ["200 with a notice", 200, { etag: '"another"' }, '{"ok":true}'],
    ["207", 207, {}, '{"results":[{"status":500}]}'],
  ])("%s", (_, status, fields, text) => {
    const headers = { "content-type": "application/json", ...fields };
    const note = { status, headers, body: new TextEncoder().encode(text) };

    test.each([["update", ["--name", "Eve"]] as const, ["delete", ["--yes"]] as const])(
      "to every %s, and nothing applied: nobody says that it was",
      async (command, args) => {
        const { server, customer, run } = await deployment((exchange) =>
          exchange.isWrite ? exchange.answer(note) : faults.slow(0)(exchange),
        );
        const { exitCode, stderr } = await run(command, customer.id, ...args);
        expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 8, writes: 0 });
        // One reply is described once.
        expect(stderr).not.toContain("; then: ");
      },
    );

    test("to a deletion that was applied: gone, by one write", async () => {
      const { server, remove } = await deployment(
        faults.firstWrite(async (exchange) => {
          await exchange.forward();
          exchange.answer(note);
        }),
      );
      const { exitCode } = await remove();
      expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 0, writes: 1 });
    });
  });

  test("200 with a notice under the tag that the next reading shows: the write is confirmed", async () => {
    const { server, update } = await deployment(
      faults.firstWrite(async (exchange) => {
        const { headers } = await exchange.forward();
        const body = new TextEncoder().encode('{"ok":true}');
        exchange.answer({ status: 200, headers: { etag: headers["etag"] ?? "" }, body });
      }),
    );
    const { exitCode, stderr } = await update("--name", "Eve", "--expect", "name=Ada");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 0, writes: 1 });
    expect(stderr).toContain("updated: 1 attempt");
  });

  /** "Eve" is shown as "Eva" by the replies that `applies` accepts. */
  const showingEva = (applies: (exchange: Exchange) => boolean) =>
    deployment(async (exchange) => {
      const reply = await exchange.forward();
      const text = new TextDecoder().decode(reply.body);
      const body = new TextEncoder().encode(applies(exchange) ? text.replace("Eve", "Eva") : text);
      exchange.answer({ ...reply, body });
    });

  test.each([
    ["--on-conflict", "reapply"],
    ["--on-conflict", "merge"],
    ["--expect", "name=Ada"],
  ])(
    "200 with another value than was sent, and so does a reading: unknown, sent once (%s %s)",
    async (option, value) => {
      const { proxy, update } = await showingEva(() => true);
      const { exitCode, stderr } = await update("--name", "Eve", "-o", "json", option, value);
      expect({ exitCode, sent: proxy?.writesSeen }).toEqual({ exitCode: 8, sent: 1 });
      expect(stderr).toContain("shows a customer or a version that this write did not make");
    },
  );

  test("200 with another value than was sent, and the reading has it: sent once, and what was read is shown", async () => {
    const lying = () => showingEva(({ isWrite }) => isWrite);
    const printed = await lying();
    const { exitCode, stdout, stderr } = await printed.update("--name", "Eve", "-o", "json");
    expect({ exitCode, sent: printed.proxy?.writesSeen }).toEqual({ exitCode: 0, sent: 1 });
    expect([JSON.parse(stdout).name, stderr]).toEqual(["Eve", expect.stringContaining("updated: 1 attempt")]);

    const result = await (await lying()).update("--name", "Eve", "--result", "-o", "json");
    expect(JSON.parse(result.stdout)).toMatchObject({ result: "updated", customer: { name: "Eve" } });

    const { proxy, customer } = await lying();
    const customers = openCustomers({ url: proxy?.url ?? "", token: TOKEN });
    const written = await customers.update(customer.id, { name: "Eve" });
    expect([written.kind, written.customer?.data.name]).toEqual(["written", "Eve"]);
  });

  test("200 with a notice to a creation: unknown", async () => {
    const body = new TextEncoder().encode('{"ok":true}');
    const { run } = await deployment((exchange) =>
      exchange.answer({ status: 200, headers: { etag: '"1"' }, body }),
    );
    const { exitCode } = await run("create", "--name", "Eve", "--email", "eve@example.com");
    expect(exitCode).toBe(8);
  });

  test("202 to a creation: unknown, and no customer is named", async () => {
    const { run } = await deployment((exchange) =>
      exchange.answer({ ...taken, headers: { location: "/jobs/7" } }),
    );
    const { exitCode, stdout } = await run("create", "--name", "Eve", "--email", "eve@example.com");
    expect({ exitCode, stdout }).toEqual({ exitCode: 8, stdout: "" });
  });
});
