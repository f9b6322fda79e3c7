import pino, { type Logger } from "pino";
import type { LogFormat } from "./config.ts";

/** The log, on stderr: stdout is for what a caller may want to read. */
export type Log = {
  readonly logger: Logger;
  /** Writes out what is gathered; call it last. */
  readonly flush: () => void;
};

/** Lines are gathered for so long: one write for many requests, and none that a request waits for. */
const GATHER_MS = 10;

export function openLog(level: string, format: LogFormat): Log {
  const destination = pino.destination({ fd: 2, sync: false, minLength: 0 });
  let gathered = "";
  let timer: NodeJS.Timeout | null = null;
  const pass = (): void => {
    timer = null;
    destination.write(gathered);
    gathered = "";
  };
  const write = (line: string): void => {
    gathered += format === "json" ? line : textLine(line);
    timer ??= setTimeout(pass, GATHER_MS);
  };
  const logger = pino({ level, base: null, timestamp: isoTimestamp }, { write });
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    pass();
    destination.flushSync();
  };
  return { logger, flush };
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
