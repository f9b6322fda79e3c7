import pino, { type Logger } from "pino";
import { SonicBoom } from "sonic-boom";
import type { LogFormat } from "../config/settings.ts";

declare module "sonic-boom" {
  interface SonicBoom {
    /** With `contentMode: "buffer"`; its own types know strings alone. */
    write(bytes: Uint8Array): boolean;
  }
}

/** One request as it was answered; every text in it is of a kind that needs no escaping in JSON. */
export type AccessEntry = {
  /** When it was answered, ms since 1970. */
  readonly timeMs: number;
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  readonly requestId: string;
  readonly caller: { readonly client: string; readonly tenant: string | null } | null;
  /** The code of a refusal. */
  readonly code: string | undefined;
  readonly isAllowedWithoutIfMatch: boolean;
};

export type Log = {
  readonly logger: Logger;
  /** Writes the line of a request: at level info, or warn for a write that a rollout let pass without If-Match. */
  readonly access: (entry: AccessEntry) => void;
};

/** A line of JSON, or the entry that {@link lineOf} makes one of. */
type Loggable = string | AccessEntry;

export function createLog(level: string, write: (loggable: Loggable) => void): Log {
  const timestamp = (): string => `,"time":"${isoTime(Date.now())}"`;
  const logger = pino({ level, base: null, timestamp }, { write });
  const hasRequests = logger.isLevelEnabled("info");
  const hasWarnings = logger.isLevelEnabled("warn");
  const access = (entry: AccessEntry): void => {
    // A write that a rollout let pass is looked for long before its end; it is a warning.
    if (hasRequests || (hasWarnings && entry.isAllowedWithoutIfMatch)) write(entry);
  };
  return { logger, access };
}

/**
 * Put together by hand, in the form that pino writes: there is one for each request, and through pino it costs a
 * fifth of the throughput of reads.
 */
export function lineOf(loggable: Loggable): string {
  if (typeof loggable === "string") return loggable;
  const { timeMs, method, route, status, durationMs, requestId, caller, code } = loggable;
  const who =
    caller === null
      ? ""
      : `,"client":"${caller.client}","tenant":${caller.tenant === null ? "null" : `"${caller.tenant}"`}`;
  const refusal = code === undefined ? "" : `,"code":"${code}"`;
  const isWarning = loggable.isAllowedWithoutIfMatch;
  const allowance = isWarning ? ',"allowedWithoutIfMatch":true' : "";
  return `{"level":${isWarning ? 40 : 30},"time":"${isoTime(timeMs)}","method":"${method}","route":"${route}","status":${status},"durationMs":${Math.round(durationMs * 1000) / 1000},"requestId":"${requestId}"${who}${refusal}${allowance},"msg":"request"}\n`;
}

/** Lines are gathered for so long: one write for many requests, and none that a request waits for. */
const GATHER_MS = 10;
/** Or for so many, in a turn of the event loop that lasts. */
const GATHERED_MAX = 1_000;
/** So much may wait for a slow reader of stderr; lines past it are dropped and counted. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
const CLOSE_MS = 2_000;

/**
 * The log of a process, on stderr: stdout is for what a caller may want to read.
 *
 * @returns the log, and what writes out all that was logged, as far as whoever reads stderr takes it in time; nothing can
 *   be logged afterwards
 */
export function openLog(level: string, format: LogFormat): Log & { readonly close: () => Promise<void> } {
  const stderr = openStderr((dropped) =>
    log.logger.warn({ dropped }, "log lines were dropped: stderr was not read or could not be written"),
  );
  let gathered: Loggable[] = [];
  let timer: NodeJS.Timeout | null = null;
  const pass = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (gathered.length === 0) return;
    const lines = gathered.map(lineOf);
    gathered = [];
    stderr.write(Buffer.from((format === "json" ? lines : lines.map(textLine)).join("")));
  };
  // Lines are made when they are written, many at a time: made amid each request they cost several times as much.
  const log = createLog(level, (loggable) => {
    if (gathered.push(loggable) >= GATHERED_MAX) pass();
    timer ??= setTimeout(pass, GATHER_MS);
  });
  const close = async (): Promise<void> => {
    pass();
    const written = new Promise<void>((done) => {
      stderr.once("close", done);
      stderr.once("error", () => done());
    });
    stderr.end();
    const late = new Promise<void>((giveUp) => {
      setTimeout(giveUp, CLOSE_MS).unref();
    });
    await Promise.race([written, late]);
  };
  return { ...log, close };
}

/**
 * Not pino.destination, which at exit waits without end for a reader that has stalled, and ends the process when
 * a write fails.
 *
 * @param onDropped told how many lines were lost, once there is room again
 */
function openStderr(onDropped: (lines: number) => void): SonicBoom {
  const stderr = new SonicBoom({
    fd: 2,
    sync: false,
    maxLength: WAITING_BYTES_MAX,
    contentMode: "buffer",
  });
  let dropped = 0;
  stderr.on("drop", (lines) => {
    dropped += lines.toString().split("\n").length - 1;
  });
  stderr.on("drain", () => {
    if (dropped > 0) onDropped(dropped);
    dropped = 0;
  });
  // A full disk, or a reader that is gone: the lines wait, and the next write tries again.
  stderr.on("error", () => {});
  return stderr;
}

let stampedMs = 0;
let stamp = "";

/** Many requests share a millisecond; its text is made once. */
function isoTime(timeMs: number): string {
  if (timeMs !== stampedMs) {
    stampedMs = timeMs;
    stamp = new Date(timeMs).toISOString();
  }
  return stamp;
}

const LEVELS: Record<number, string> = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};

/** `12:34:56.789 info request method=GET route=/customers/{id} status=200 …` */
function textLine(line: string): string {
  const { time, level, msg, ...rest } = JSON.parse(line) as { time: string; level: number; msg: string };
  const pairs = Object.entries(rest).map(
    ([key, value]) => ` ${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return `${time.slice(11, 23)} ${LEVELS[level] ?? level} ${msg}${pairs.join("")}\n`;
}
