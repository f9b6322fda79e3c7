import type { Copy, CopyFault } from "./vacuum-thread-worker.ts";

/**
 * Copies a database, with what is in its -wal, to a new file, and waits until that is on the disk. In a thread of its
 * own: `VACUUM INTO` blocks its thread, and a blocked main thread handles no signals.
 *
 * @throws an Error with SQLite's `code`, or the system's
 */
export async function vacuumInto(from: string, to: string, lockWaitMs: number): Promise<void> {
  const worker = new Worker(new URL("./vacuum-thread-worker.ts", import.meta.url).href);
  try {
    const fault = await new Promise<CopyFault>((settle, fail) => {
      worker.onmessage = ({ data }: MessageEvent<CopyFault>) => settle(data);
      worker.onerror = ({ message }) => fail(new Error(message));
      worker.postMessage({ from, to, lockWaitMs } satisfies Copy);
    });
    if (fault !== null) throw Object.assign(new Error(fault.message), { code: fault.code });
  } finally {
    worker.terminate();
  }
}
