/**
 * INT, TERM and HUP of the process, owned in one place. The first one asks the running command to stop; a
 * second one ends the process at once, as the signal does by itself. Cleanups run at every end, short of
 * SIGKILL.
 */
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
  for (const signal of SIGNALS) {
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
