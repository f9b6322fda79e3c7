import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { median } from "./measure.ts";

/** What a disk in a data centre or a cloud takes for an fdatasync; a machine of its own may take a tenth. */
export const SIMULATED_SYNC_MS = 1;
const SYNCS = 200;
const PAGE_BYTES = 4096;

/** @returns how long an fdatasync of a page takes on the disk of this directory, in ms, the median of 200 */
export function diskSyncMs(directory: string): number {
  const path = join(directory, "sync");
  const file = openSync(path, "w");
  const page = Buffer.alloc(PAGE_BYTES, 1);
  const times = Array.from({ length: SYNCS }, () => {
    writeSync(file, page);
    const startedAt = performance.now();
    fdatasyncSync(file);
    return performance.now() - startedAt;
  });
  closeSync(file);
  rmSync(path);
  return median(times);
}

/** The command with {@link SIMULATED_SYNC_MS} more for each fdatasync; its process id stays that of the command. */
export function withSlowSync(command: readonly string[]): string[] {
  const calls = "fsync,fdatasync";
  return [
    ...["strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", `trace=${calls}`],
    ...["-e", `inject=${calls}:delay_exit=${SIMULATED_SYNC_MS * 1000}`, ...command],
  ];
}
