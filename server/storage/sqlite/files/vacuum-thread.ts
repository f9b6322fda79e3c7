/**
 * `VACUUM INTO` holds its thread until it is done, so that no signal would be handled. As a text: the bundler needs no
 * list of it, as it does of a worker with a file of its own.
 */
const SOURCE = `
import { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync } from "node:fs";
self.onmessage = ({ data: { from, to, lockWaitMs } }) => {
  try {
    const db = new Database(from, { readwrite: true, create: false });
    try {
      db.run("PRAGMA busy_timeout = " + lockWaitMs);
      db.run("VACUUM INTO ?", [to]);
    } finally {
      db.close();
    }
    const fd = openSync(to, "r");
    fsyncSync(fd);
    closeSync(fd);
    self.postMessage(null);
  } catch ({ code, message }) {
    self.postMessage({ code, message });
  }
};
`;

type Fault = { readonly code?: string; readonly message: string };

/**
 * Copies a database, with what is in its -wal, to a new file in a thread of its own, and waits until that is on the
 * disk.
 *
 * @throws an Error with SQLite's `code`, or the system's
 */
export async function vacuumInto(from: string, to: string, lockWaitMs: number): Promise<void> {
  const worker = new Worker(URL.createObjectURL(new Blob([SOURCE], { type: "text/javascript" })));
  try {
    const fault = await new Promise<Fault | null>((settle, fail) => {
      worker.onmessage = ({ data }: MessageEvent<Fault | null>) => settle(data);
      worker.onerror = ({ message }) => fail(new Error(message));
      worker.postMessage({ from, to, lockWaitMs });
    });
    if (fault !== null) throw Object.assign(new Error(fault.message), { code: fault.code });
  } finally {
    worker.terminate();
  }
}
