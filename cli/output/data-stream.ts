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

export function openDataStream(stream: Output): DataStream {
  let ended: { quiet: boolean; reason: string } | undefined;
  const end = (error: NodeJS.ErrnoException) => {
    ended ??= { quiet: error.code === "EPIPE", reason: error.message };
  };
  stream.on("error", end);
  return {
    write: (data) =>
      new Promise((resolve) => {
        if (ended !== undefined) return resolve(false);
        stream.write(data, (error) => {
          if (error) end(error);
          resolve(ended === undefined);
        });
      }),
    failure: () => (ended === undefined || ended.quiet ? undefined : ended.reason),
  };
}
