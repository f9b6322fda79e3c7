/** stdout and stderr of the process. */
import { fstatSync, readFileSync, statSync, write } from "node:fs";

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
 * starting Bun does, and it leaves a pipe non-blocking, so that the next program of a shell script that writes to the
 * same pipe fails where it is full. A terminal keeps its stream, for its width and its resize events.
 */
export function openOutput(name: "stdout" | "stderr"): Output {
  const fd = name === "stdout" ? 1 : 2;
  const stats = fstatSync(fd);
  if (stats.isCharacterDevice()) {
    // `isatty` would load the streams. What is not the null device may be a terminal.
    if (stats.rdev !== statSync("/dev/null").rdev) return process[name];
    if (isOwn(fd)) return closedOutput(name);
  }
  // `2>&1`: what is written first comes first.
  const file = `${stats.dev}:${stats.ino}`;
  return {
    write(data, written = () => {}) {
      const bytes = typeof data === "string" ? Buffer.from(data) : data;
      const last = lastWrites.get(file) ?? Promise.resolve();
      lastWrites.set(
        file,
        last.then(() => writeWhole(fd, bytes)).then(() => written(), written),
      );
    },
    on: () => {}, // every error goes to the writer that met it
  };
}

/** The last write to each file. Standard output and standard error may be one. */
const lastWrites = new Map<string, Promise<unknown>>();

async function writeWhole(fd: number, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += await writeSome(fd, bytes, at);
}

/** In a thread, so that a slow reader does not delay signals. @returns how many bytes were written */
async function writeSome(fd: number, bytes: Uint8Array, at: number): Promise<number> {
  const { error, count } = await new Promise<{ error: NodeJS.ErrnoException | null; count: number }>((done) =>
    write(fd, bytes, at, bytes.length - at, null, (error, count) => done({ error, count })),
  );
  if (error === null) return count;
  if (error.code !== "EAGAIN") throw error;
  // Another program left the pipe non-blocking, and it is full for the moment.
  await Bun.sleep(AGAIN_MS);
  return 0;
}

const AGAIN_MS = 5;

/** As `>&-` leaves it: what is to be printed can't be. */
function closedOutput(name: string): Output {
  return {
    write: (_, written = () => {}) => queueMicrotask(() => written(new Error(`${name} is closed`))),
    on: () => {},
  };
}

/** Of Linux, on the platforms that a release has. */
const O_CLOEXEC = 0o2000000;

/**
 * Where a standard descriptor is closed, Bun opens the null device in its place, with O_CLOEXEC: no descriptor that was
 * inherited, such as that of `>/dev/null`, has that. Only Linux shows it.
 */
function isOwn(fd: number): boolean {
  try {
    const [, flags = "0"] =
      /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8")) ?? [];
    return (Number.parseInt(flags, 8) & O_CLOEXEC) !== 0;
  } catch {
    return false;
  }
}
