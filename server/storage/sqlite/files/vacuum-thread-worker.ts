/** The thread of a copy: it copies one database, and says how that ended. */
import { Database } from "bun:sqlite";
import { syncFile } from "../../synced-file.ts";

export type Copy = { readonly from: string; readonly to: string; readonly lockWaitMs: number };
/** What SQLite or the system said; null where the copy is on the disk. */
export type CopyFault = { readonly code: string | undefined; readonly message: string } | null;

declare const self: Worker;

function copy({ from, to, lockWaitMs }: Copy): void {
  const db = new Database(from, { readwrite: true, create: false });
  try {
    db.run(`PRAGMA busy_timeout = ${lockWaitMs}`);
    db.run("VACUUM INTO ?", [to]);
  } finally {
    db.close();
  }
  syncFile(to);
}

function faultOf(error: unknown): CopyFault {
  const { code, message } = error as NodeJS.ErrnoException;
  return { code, message };
}

self.onmessage = ({ data }: MessageEvent<Copy>): void => {
  let fault: CopyFault = null;
  try {
    copy(data);
  } catch (error) {
    fault = faultOf(error);
  }
  self.postMessage(fault satisfies CopyFault);
};
