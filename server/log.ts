import pino, { type Logger } from "pino";
import { SonicBoom } from "sonic-boom";
import type { LogFormat } from "./config.ts";

/** One request as it was answered; every text in it is of a kind that needs no escaping in JSON. */
type AccessEntry = {
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
  /** Writes the line of a request, at level info. */
  readonly access: (entry: AccessEntry) => void;
};

/** @param write takes whole lines of JSON */
export function createLog(level: string, write: (line: string) => void): Log {
  const logger = pino({ level, base: null, timestamp: isoTimestamp }, { write });
  const hasAccess = logger.isLevelEnabled("info");
  // Put together by hand, in the form that pino writes: there is one for each request, and through pino it costs a
  // fifth of the throughput of reads.
  const access = (entry: AccessEntry): void => {
    if (!hasAccess) return;
    const { method, route, status, durationMs, requestId, caller, code, isAllowedWithoutIfMatch } = entry;
    const who =
      caller === null
        ? ""
        : `,"client":"${caller.client}","tenant":${caller.tenant === null ? "null" : `"${caller.tenant}"`}`;
    const refusal = code === undefined ? "" : `,"code":"${code}"`;
    const allowance = isAllowedWithoutIfMatch ? ',"allowedWithoutIfMatch":true' : "";
    write(
      `{"level":30${isoTimestamp()},"method":"${method}","route":"${route}","status":${status},"durationMs":${durationMs.toFixed(3)},"requestId":"${requestId}"${who}${refusal}${allowance},"msg":"request"}\n`,
    );
  };
  return { logger, access };
}

/** Lines are gathered for so long: one write for many requests, and none that a request waits for. */
const GATHER_MS = 10;
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
  let gathered = "";
  let timer: NodeJS.Timeout | null = null;
  const pass = (): void => {
    timer = null;
    stderr.write(gathered);
    gathered = "";
  };
  const log = createLog(level, (line) => {
    gathered += format === "json" ? line : textLine(line);
    timer ??= setTimeout(pass, GATHER_MS);
  });
  const close = async (): Promise<void> => {
    if (timer !== null) clearTimeout(timer);
    pass();
    const written = new Promise<void>((done) => {
      stderr.once("close", done);
      stderr.once("error", () => done());
    });
    stderr.end();
    await Promise.race([written, Bun.sleep(CLOSE_MS)]);
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
  const stderr = new SonicBoom({ fd: 2, sync: false, maxLength: WAITING_BYTES_MAX });
  let dropped = 0;
  stderr.on("drop", (text) => {
    dropped += text.split("\n").length - 1;
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
function isoTimestamp(): string {
  const nowMs = Date.now();
  if (nowMs !== stampedMs) {
    stampedMs = nowMs;
    stamp = `,"time":"${new Date(nowMs).toISOString()}"`;
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
