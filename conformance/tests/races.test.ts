/** Races set every two kinds of writers against each other, in both orders: each may check by its own code. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readReport } from "../report/report-file.ts";
import type { Moment, Report } from "../report/schema.ts";
import { runKit } from "../run/engine.ts";
import { profileFlags } from "../self/case.ts";
import { FAULTS } from "../self/faults.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";

async function run(only: readonly string[], fault?: string): Promise<Report> {
  const plant = FAULTS.find(({ id }) => id === fault)?.plant(() => undefined);
  const server = await startSoundServer(PLAIN, plant);
  try {
    const profile = readProfile(profileFlags(server, PLAIN), {});
    return await runKit(profile, { ...defaultOptions, mode: "quick", rounds: 1, connections: 6, only });
  } finally {
    await server.close();
  }
}

/** The first two that were released in each round. */
function openings(timeline: readonly Moment[]): string[] {
  const rounds = Map.groupBy(timeline, ({ round }) => round);
  return [...rounds.values()].map((moments) => {
    const [first, second] = moments.toSorted((a, b) => a.sentMs - b.sentMs);
    return [first, second].map((each) => each?.what.split(" ")[0]).join(" before ");
  });
}

test("ATM-03 and ATM-04 release each two kinds of writers in both orders, however few rounds are asked for", async () => {
  // Every round has several winners then, so every round is shown.
  const { rules } = await run(["ATM-03", "ATM-04"], "all-find-then-save");
  const seen = new Set(rules.flatMap(({ timeline }) => openings(timeline)));
  for (const [one, other] of [
    ["PATCH", "PUT"],
    ["PUT", "DELETE"],
    ["PATCH", "DELETE"],
  ]) {
    expect(seen).toContain(`${one} before ${other}`);
    expect(seen).toContain(`${other} before ${one}`);
  }
});

test.each(["losers-answered-409", "losers-answered-404", "losers-answered-500"])(
  "losers to an update are not let off because losers to a DELETE are refused as they should be (%s)",
  async (fault) => {
    const { rules } = await run(["ATM-04"], fault);
    expect(rules.map(({ outcome }) => outcome)).toEqual(["violation"]);
  },
);

test.each([
  ["ATM-03", "put-ignores-if-match", "IFM-03"],
  ["ATM-04", "patch-ignores-if-match", "IFM-31"],
])(
  "%s has not passed where one kind of writer is left out because it checks nothing (%s)",
  async (rule, fault, see) => {
    const { rules } = await run([see, rule], fault);
    expect(rules.find(({ id }) => id === rule)).toMatchObject({
      outcome: "could-not-run",
      reason: expect.stringContaining(`see ${see}`),
    });
  },
);

/** Passes all on, and ends the header section of each DELETE itself: the service answers before the last bytes are there. */
async function endsDeletesEarly(port: number): Promise<{ url: string; close: () => void }> {
  const sockets = new Set<Socket>();
  const front = createServer((client) => {
    const service = connect(port, "127.0.0.1");
    for (const socket of [client, service]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
    }
    client.once("data", (bytes: Buffer) => {
      const isHeld = bytes.subarray(0, 7).toString() === "DELETE " && !bytes.includes("\r\n\r\n");
      service.write(isHeld ? `${bytes.toString("latin1").trimEnd()}\r\n\r\n` : bytes, "latin1");
      if (isHeld) client.resume();
      else client.pipe(service);
      service.pipe(client);
    });
    client.on("close", () => service.destroy());
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  const address = front.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`,
    close: () => {
      for (const socket of sockets) socket.destroy();
      front.close();
    },
  };
}

test("a report on answers that came before their requests were complete can be read", async () => {
  const server = await startSoundServer(PLAIN);
  const front = await endsDeletesEarly(Number(new URL(server.url).port));
  const folder = mkdtempSync(join(tmpdir(), "kit-early-"));
  try {
    const profile = readProfile(profileFlags({ ...server, url: front.url }, PLAIN), {});
    const options = { mode: "quick", rounds: 2, connections: 4, only: ["ATM-07"] } as const;
    const report = await runKit(profile, { ...defaultOptions, ...options });
    expect(report.races.map(({ rule, rounds }) => [rule, rounds])).toEqual([["ATM-07", 2]]);
    const path = join(folder, "report.json");
    writeFileSync(path, JSON.stringify(report));
    expect(readReport(path)).toEqual(report);
  } finally {
    front.close();
    await server.close();
    rmSync(folder, { recursive: true });
  }
});
