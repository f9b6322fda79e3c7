const STOPPING = ["SIGTERM", "SIGINT"] as const;
type Stopping = (typeof STOPPING)[number];

let reload = (): void => {};
let stop: (() => void) | null = null;
let early: Stopping | null = null;

/**
 * Takes signals before anything else of the program is loaded. The default action of SIGHUP ends the process, and a
 * service manager may send it at any time. One that comes before the service runs asks for nothing: all files are yet
 * to be read. SIGTERM and SIGINT are kept until it is known what they end: the system ignores them in process 1 of a
 * container, which would then go on.
 */
export function takeSignals(): void {
  process.on("SIGHUP", () => reload());
  for (const signal of STOPPING) process.on(signal, take);
}

function take(signal: Stopping): void {
  early = signal;
  stop?.();
}

export function onReload(listener: () => void): void {
  reload = listener;
}

/** Calls the listener at SIGTERM and SIGINT, and at once where one came before. */
export function onStop(listener: () => void): void {
  stop = listener;
  if (early !== null) listener();
}

/** SIGTERM and SIGINT end this process by their default action, also where one came before. */
export function endBySignals(): void {
  for (const signal of STOPPING) process.off(signal, take);
  if (early !== null) process.kill(process.pid, early);
}

/** Runs a cleanup before SIGTERM or SIGINT ends a command. @returns what unregisters it */
export function beforeEnd(clean: () => void): () => void {
  const forget = (): void => {
    for (const signal of STOPPING) process.off(signal, end);
  };
  const end = (signal: Stopping): void => {
    clean();
    forget();
    process.kill(process.pid, signal);
  };
  for (const signal of STOPPING) process.on(signal, end);
  return forget;
}
