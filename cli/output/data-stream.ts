/**
 * stdout, written so that nothing is lost or crashes: each write waits until the bytes are handed over (a
 * process that ends earlier loses what is past the pipe's buffer), and a reader that went away is a value.
 */
import type { Output } from "./standard-output.ts";

export type DataStream = {
  /** False when the reader is gone (EPIPE) or the output can't be written: stop producing. */
  write(data: string | Uint8Array): Promise<boolean>;
  /** Why the output is incomplete, where that is a failure: a full disk is, a reader that left is not. */
  failure(): string | undefined;
};

/** After an interruption: a reader that is only slow gets the page that is on its way. */
const PATIENCE_MS = 1000;

export function openDataStream(stream: Output, interrupted: AbortSignal): DataStream {
  let ended: { quiet: boolean; reason: string } | undefined;
  type Written = (error?: Error | null) => void;
  const waiting = new Set<Written>();
  const limit = (written: Written) =>
    setTimeout(written, PATIENCE_MS, new Error("interrupted while nobody read it"));
  const end = (error: NodeJS.ErrnoException) => {
    ended ??= { quiet: error.code === "EPIPE", reason: error.message };
  };
  stream.on("error", end);
  interrupted.addEventListener("abort", () => waiting.forEach(limit));
  return {
    write: (data) =>
      new Promise((resolve) => {
        if (ended !== undefined) return resolve(false);
        const written: Written = (error) => {
          if (!waiting.delete(written)) return;
          if (error) end(error);
          resolve(ended === undefined);
        };
        waiting.add(written);
        if (interrupted.aborted) limit(written);
        stream.write(data, written);
      }),
    failure: () => (ended === undefined || ended.quiet ? undefined : ended.reason),
  };
}
