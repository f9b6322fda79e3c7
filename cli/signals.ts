/**
 * INT, TERM and HUP of the process, owned in one place. The first one asks the running command to stop; a
 * second one ends the process at once, as the signal does by itself. A signal that the process was started to
 * ignore stays ignored. Cleanups run at every end, short of SIGKILL.
 */
import { readFileSync } from "node:fs";
import { constants } from "node:os";

/** The process, as far as a command may touch it. */
export type Host = {
  /** Standard input as bytes. */
  stdin: NodeJS.ReadableStream;
  /** Stops the command as Ctrl-C does. */
  interrupt(): void;
  /** Leaves Ctrl-C to a child, such as an editor, until the returned function is called. */
  suspendInterrupts(): () => void;
  /** Runs `cleanup` when the process ends, by a signal too; the returned function takes that back. */
  onExit(cleanup: () => void): () => void;
};

/** HUP comes when a terminal closes; TERM is what `timeout`, cron and service managers send. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export type Signals = Pick<Host, "suspendInterrupts" | "onExit" | "interrupt"> & {
  /** Calls back once, at the first signal. */
  onInterrupt(callback: () => void): void;
};

export function ownSignals(process: NodeJS.Process): Signals {
  const cleanups = new Set<() => void>();
  const callbacks: (() => void)[] = [];
  let interrupted = false;
  let suspensions = 0;

  const cleanUp = () => {
    for (const cleanup of cleanups) cleanup();
    cleanups.clear();
  };
  const interrupt = () => {
    interrupted = true;
    for (const callback of callbacks.splice(0)) callback();
  };
  const ignored = ignoredSignals();
  for (const signal of SIGNALS) {
    if (ignored.has(signal)) continue;
    process.on(signal, () => {
      if (signal === "SIGINT" && suspensions > 0) return;
      if (!interrupted) return interrupt();
      cleanUp();
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    });
  }
  process.once("exit", cleanUp);
  return {
    interrupt,
    onInterrupt: (callback) => void callbacks.push(callback),
    suspendInterrupts() {
      suspensions += 1;
      let resumed = false;
      return () => {
        if (!resumed) suspensions -= 1;
        resumed = true;
      };
    },
    onExit(cleanup) {
      cleanups.add(cleanup);
      return () => void cleanups.delete(cleanup);
    },
  };
}

/**
 * Signals that the process was started to ignore: SIGHUP under `nohup`, SIGINT in the background of a script. A
 * handler would end that. None where the system does not show them, as on macOS: Bun and Node.js can't tell.
 */
function ignoredSignals(): ReadonlySet<(typeof SIGNALS)[number]> {
  const mask = BigInt(`0x${/^SigIgn:\s*([0-9a-f]+)$/m.exec(processStatus())?.[1] ?? 0}`);
  return new Set(SIGNALS.filter((signal) => (mask >> BigInt(constants.signals[signal] - 1)) & 1n));
}

/** What Linux says of this process; "" on another system. */
function processStatus(): string {
  try {
    return readFileSync("/proc/self/status", "utf8");
  } catch {
    return "";
  }
}
