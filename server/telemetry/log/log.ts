import pino, { type Logger } from "pino";
import { SonicBoom } from "sonic-boom";
import { isoTime } from "../../domain/text/iso-time.ts";
import type { AnsweredRequest } from "../answered-request.ts";

declare module "sonic-boom" {
  interface SonicBoom {
    /** With `contentMode: "buffer"`; its own types know strings alone. */
    write(bytes: Uint8Array): boolean;
  }
}

export type Log = {
  readonly logger: Logger;
  /**
   * Writes the line of a request: at info; at warn for a write that a rollout
   * let pass without If-Match; at debug for a probe or a scrape that succeeded.
   *
   * @param address the client's; behind a proxy that is not trusted, the proxy's
   */
  readonly access: (answered: AnsweredRequest, address: string) => void;
};

/** What makes the line of a request. Every text in it is of a kind that needs no escaping in JSON. */
type AccessEntry = {
  readonly answered: AnsweredRequest;
  readonly level: AccessLevel;
  readonly address: string;
};
type AccessLevel = "debug" | "info" | "warn";

/** A line of JSON, or an entry that {@link lineOf} makes into one. */
type Loggable = string | AccessEntry;

/** Load balancers and Prometheus ask for these every few seconds. */
const PROBED_ROUTES: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

function accessLevel({ isAllowedWithoutIfMatch, route, status }: AnsweredRequest): AccessLevel {
  // A write that a rollout let pass is looked for long before its end.
  if (isAllowedWithoutIfMatch) return "warn";
  return PROBED_ROUTES.has(route) && status < 400 ? "debug" : "info";
}

export function createLog(level: string, write: (loggable: Loggable) => void): Log {
  const timestamp = (): string => `,"time":"${isoTime(Date.now())}"`;
  const formatters = { level: (label: string) => ({ level: label }) };
  const logger = pino({ level, base: null, timestamp, formatters }, { write });
  const isEnabled = {
    debug: logger.isLevelEnabled("debug"),
    info: logger.isLevelEnabled("info"),
    warn: logger.isLevelEnabled("warn"),
  };
  const access = (answered: AnsweredRequest, address: string): void => {
    const own = accessLevel(answered);
    if (isEnabled[own]) write({ answered, level: own, address });
  };
  return { logger, access };
}

/**
 * Put together by hand, in the form that pino writes: there is one for each
 * request, and through pino it costs a fifth of the throughput of reads.
 */
export function lineOf(loggable: Loggable): string {
  if (typeof loggable === "string") return loggable;
  const { answered, level, address } = loggable;
  const { timeMs, method, route, status, durationMs, requestId, caller, code } = answered;
  const who =
    caller === null
      ? ""
      : `,"client":"${caller.client}","tenant":${caller.tenant === null ? "null" : `"${caller.tenant}"`}`;
  const refusal = code === undefined ? "" : `,"code":"${code}"`;
  const allowance = answered.isAllowedWithoutIfMatch ? ',"allowedWithoutIfMatch":true' : "";
  return `{"level":"${level}","time":"${isoTime(timeMs)}","method":"${method}","route":"${route}","status":${status},"durationMs":${Math.round(durationMs * 1000) / 1000},"requestId":"${requestId}","address":"${address}"${who}${refusal}${allowance},"msg":"request"}\n`;
}

/**
 * Time for which lines are gathered: many requests share one write to stderr, and no request waits for it.
 */
const GATHER_MS = 10;
/** Maximum number of gathered lines, for a long turn of the event loop in which no timer fires. */
const GATHERED_MAX = 1_000;
/**
 * What may wait for a reader of stderr that has stalled; further lines are dropped and counted. Without
 * the limit memory grows by 6 MB a second at 30,000 requests a second until the process is killed.
 */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
const CLOSE_MS = 2_000;

/**
 * The log of a process, on stderr: stdout is for what a caller may want to read.
 *
 * @returns the log, and `close`, which writes what was logged, for at most
 *   2 s if the reader of stderr is slow; lines that come later are dropped
 */
export function openLog(
  level: string,
  format: "json" | "text",
): Log & { readonly close: () => Promise<void> } {
  const stderr = openStderr((dropped) =>
    log.logger.warn({ dropped }, "log lines were dropped: stderr was not read or could not be written"),
  );
  let gathered: Loggable[] = [];
  let timer: NodeJS.Timeout | null = null;
  let isClosed = false;
  const pass = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    // A signal may come while the process ends: its line must not be an exception of a stream that is closed.
    if (gathered.length === 0 || isClosed) return;
    const lines = gathered.map(lineOf);
    gathered = [];
    stderr.write(Buffer.from((format === "json" ? lines : lines.map(textLine)).join("")));
  };
  // Lines are made when they are written, many at a time:
  // made amid each request they cost several times as much.
  const log = createLog(level, (loggable) => {
    if (gathered.push(loggable) >= GATHERED_MAX) pass();
    timer ??= setTimeout(pass, GATHER_MS);
  });
  const close = async (): Promise<void> => {
    pass();
    isClosed = true;
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
 * Not pino.destination, which at exit waits without end for a
 * reader that has stalled, and ends the process when a write fails.
 *
 * @param onDropped called with the number of lost lines once there is room again
 */
function openStderr(onDropped: (lines: number) => void): SonicBoom {
  const stderr = new SonicBoom({ fd: 2, sync: false, maxLength: WAITING_BYTES_MAX, contentMode: "buffer" });
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

/** `12:34:56.789 info request method=GET route=/customers/{id} status=200 …` */
function textLine(line: string): string {
  const { time, level, msg, ...rest } = JSON.parse(line) as { time: string; level: string; msg: string };
  const pairs = Object.entries(rest).map(
    ([key, value]) => ` ${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return `${time.slice(11, 23)} ${level} ${msg}${pairs.join("")}\n`;
}
