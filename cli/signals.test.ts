/** In a process of its own, which prints what happens and otherwise waits forever. */
import { expect, test } from "bun:test";

const MODULE = new URL("./signals.ts", import.meta.url).pathname;

async function host(body: string) {
  const script = `
    import { ownSignals } from ${JSON.stringify(MODULE)};
    const signals = ownSignals(process);
    signals.onExit(() => console.log("cleaned"));
    setInterval(() => {}, 1000);
    ${body}
    console.log("ready");`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
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
