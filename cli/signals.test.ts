/** In a process of its own, which prints what happens and otherwise waits forever. */
import { expect, test } from "bun:test";

const MODULE = new URL("./signals.ts", import.meta.url).pathname;

/** @param ignored signals that the process starts with as ignored, as `nohup` starts one with SIGHUP. */
async function host(body: string, ignored: readonly NodeJS.Signals[] = []) {
  const script = `
    import { ownSignals } from ${JSON.stringify(MODULE)};
    const signals = ownSignals(process);
    signals.onExit(() => console.log("cleaned"));
    setInterval(() => {}, 1000);
    ${body}
    console.log("ready");`;
  const traps = ignored.map((signal) => `trap '' ${signal.slice(3)}; `).join("");
  const command = ["sh", "-c", `${traps}exec "$@"`, "sh", process.execPath, "-e", script];
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "inherit" });
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    async until(words: string): Promise<void> {
      while (!text.includes(words)) {
        const { value, done } = await lines.read();
        if (done) throw new Error(`ended without ${words}: ${text}`);
        text += value;
      }
    },
    async end() {
      await child.exited;
      for (;;) {
        const { value, done } = await lines.read();
        if (done) break;
        text += value;
      }
      return { signal: child.signalCode, lines: text.trim().split("\n") };
    },
  };
}

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "the first %s is told once, the second one cleans up and ends the process as it does by itself",
  async (signal) => {
    const process = await host('signals.onInterrupt(() => console.log("interrupted"));');
    await process.until("ready");
    process.kill(signal);
    await process.until("interrupted");
    process.kill(signal);
    expect(await process.end()).toEqual({ signal, lines: ["ready", "interrupted", "cleaned"] });
  },
);

test("while interrupts are suspended Ctrl-C is nobody's; afterwards it works, and a second one ends the process", async () => {
  const process = await host(`
    signals.onInterrupt(() => console.log("interrupted"));
    const resume = signals.suspendInterrupts();
    // SIGUSR1 and SIGUSR2 come behind SIGINT, so they show that it was seen.
    process.on("SIGUSR1", () => console.log("still here"));
    process.on("SIGUSR2", () => { resume(); resume(); console.log("resumed"); });`);
  await process.until("ready");
  process.kill("SIGINT");
  process.kill("SIGUSR1");
  await process.until("still here");
  process.kill("SIGUSR2");
  await process.until("resumed");
  process.kill("SIGINT");
  await process.until("interrupted");
  process.kill("SIGINT");
  expect(await process.end()).toEqual({
    signal: "SIGINT",
    lines: ["ready", "still here", "resumed", "interrupted", "cleaned"],
  });
});

test("a cleanup that was taken back does not run, and the others run once at a normal end", async () => {
  const process = await host(`
    signals.onExit(() => console.log("taken back"))();
    setImmediate(() => process.exit(3));`);
  expect(await process.end()).toEqual({ signal: null, lines: ["ready", "cleaned"] });
});

// Only Linux shows a process which signals it ignores.
test.skipIf(process.platform !== "linux").each([
  ["SIGHUP", "SIGTERM"],
  ["SIGINT", "SIGHUP"],
  ["SIGTERM", "SIGINT"],
] as const)(
  "a process that is started with %s ignored goes on ignoring it, and stops at %s",
  async (ignored, other) => {
    const process = await host(
      `signals.onInterrupt(() => console.log("interrupted"));
    let rounds = 0;
    process.on("SIGUSR1", () => console.log("round", ++rounds));`,
      [ignored],
    );
    await process.until("ready");
    process.kill(ignored);
    // Of two signals that arrive together either may be handled first, so only the second round comes for certain
    // behind the ignored one.
    for (const round of [1, 2]) {
      process.kill("SIGUSR1");
      await process.until(`round ${round}`);
    }
    process.kill(other);
    await process.until("interrupted");
    process.kill(other);
    expect(await process.end()).toEqual({
      signal: other,
      lines: ["ready", "round 1", "round 2", "interrupted", "cleaned"],
    });
  },
);
