/**
 * What a write is refused for, through the real program: the exit code, the words, and that nothing was
 * sent.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { OURS } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";
import { startDeployment as deployment, stopDeployments } from "./support/other-deployment.ts";

afterAll(stopDeployments);

describe.concurrent("--expect of a field that the customer has not", () => {
  test.each([
    ["update", ["--name", "Eve"]],
    ["update", ["--name", "Eve", "--dry-run"]],
    ["delete", ["--yes"]],
    ["delete", ["--dry-run"]],
  ])("%s %j: a slip of the pen, exit 2, so that no loop runs on it forever", async (command, args) => {
    const { server, customer, run } = await deployment();
    const { exitCode, stderr } = await run(
      command,
      customer.id,
      ...args,
      "--expect",
      "emial=ada@example.com",
    );
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 2, writes: 0 });
    expect(stderr).toContain('Did you mean "email"?');
  });

  test("and that it had at the first reading: a conflict", async () => {
    const place = await deployment(
      async (exchange) => {
        const reply = await exchange.forward();
        const gone = Buffer.from(reply.body)
          .toString()
          .replace(/,"note":"free"/, "");
        if (exchange.isWrite) taken = true;
        exchange.answer(
          exchange.isWrite
            ? { ...reply, status: 412 }
            : taken
              ? { ...reply, body: Buffer.from(gone) }
              : reply,
        );
      },
      { ...OURS, extraMembers: '"note":"free"' },
    );
    let taken = false;
    const { exitCode, stderr } = await place.update("--name", "Eve", "--expect", "note=free");
    expect(exitCode).toBe(5);
    expect(stderr).toContain('no member "note"');
  });
});

describe.concurrent("another customer in place of the one that was asked for", () => {
  test.each([
    ["update", ["--name", "Eve"]],
    ["update", ["--status", "closed"]],
    ["delete", ["--yes"]],
  ])("%s %j: refused, nothing is sent", async (command, args) => {
    const place = await deployment(async (exchange) => {
      const reply = await exchange.forward();
      const body = Buffer.from(
        JSON.stringify({ ...JSON.parse(Buffer.from(reply.body).toString()), id: other }),
      );
      exchange.answer({ ...reply, body });
    });
    const other = place.server.add({ name: "Other" }).id;
    const { exitCode, stderr } = await place.run(command, place.customer.id, ...args);
    expect({ exitCode, writes: place.server.writes.length }).toEqual({ exitCode: 1, writes: 0 });
    expect(stderr).toContain(`the server answered with customer ${other}`);
  });

  test.each([
    ["in capitals and braces", (id: string) => `{${id.toUpperCase()}}`],
    ["by a name of the deployment's own", () => "customer-7"],
  ])("the same one, %s, is no other", async (_, spelled) => {
    const { server, customer, run } = await deployment(async (exchange) => {
      const reply = await exchange.forward();
      if (exchange.isWrite) return exchange.answer(reply);
      const read = JSON.parse(Buffer.from(reply.body).toString());
      const body = Buffer.from(JSON.stringify({ ...read, id: spelled(customer.id) }));
      exchange.answer({ ...reply, body });
    });
    expect((await run("update", customer.id, "--name", "Eve")).exitCode).toBe(0);
    expect(server.writes).toHaveLength(1);
  });
});

describe.concurrent("--on-conflict fail, after a 412", () => {
  test.each([
    ["another value", "Theirs", 5, "someone else changed name"],
    ["the very value that was asked for", "Mine", 0, "by someone else or by a copy of the request"],
  ])("that leaves %s", async (_, name, code, words) => {
    const place = await deployment(faults.interfere(() => place.server.change(place.customer.id, { name })));
    const { exitCode, stderr } = await place.update("--name", "Mine", "--on-conflict", "fail");
    expect({ exitCode, writes: place.server.writes.length }).toEqual({ exitCode: code, writes: 0 });
    expect(stderr).toContain(words);
  });

  test("a deletion is advised as a deletion", async () => {
    const place = await deployment(
      faults.interfere(() => place.server.change(place.customer.id, { name: "Theirs" })),
    );
    const { exitCode, stderr } = await place.remove("--on-conflict", "fail");
    expect(exitCode).toBe(5);
    expect(stderr).toContain("it is deleted whatever others changed");
    expect(stderr).not.toContain("to set yours");
  });
});
