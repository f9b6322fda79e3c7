/** stdout and stderr of the process. */
import { fstatSync, statSync } from "node:fs";

/** What the program needs of them; a stream of Node.js is one. */
export type Output = {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  /** @param written called when the bytes are handed over, or can't be. */
  write(data: string | Uint8Array, written?: (error?: Error | null) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
};

/**
 * Files, pipes and sockets are written without `process.stdout`: loading the streams of Node.js for it takes as long as
 * starting Bun does. Of a terminal, its width and its changes are wanted too.
 */
export function openOutput(name: "stdout" | "stderr"): Output {
  if (mayBeTerminal(name === "stdout" ? 1 : 2)) return process[name];
  const sink = Bun[name].writer();
  let last: Promise<unknown> = Promise.resolve();
  return {
    write(data, written = () => {}) {
      last = last
        .then(async () => {
          await sink.write(data);
          await sink.flush();
        })
        .then(() => written(), written);
    },
    on: () => {}, // every error goes to the writer that met it
  };
}

/** `isatty` itself would load the streams. */
function mayBeTerminal(fd: number): boolean {
  const stats = fstatSync(fd);
  return stats.isCharacterDevice() && stats.rdev !== statSync("/dev/null").rdev;
}
