import pino, { type Logger } from "pino";
import type { LogFormat } from "./config.ts";

/** The log: on stderr, since stdout is for what a caller may want to read. Written without holding up requests. */
export type Log = { readonly logger: Logger; readonly flush: () => void };

export function openLog(level: string, format: LogFormat): Log {
  const destination = pino.destination({ fd: 2, sync: false, minLength: 0 });
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  const logger =
    format === "json"
      ? pino(options, destination)
      : pino(options, { write: (line: string) => void destination.write(textLine(line)) });
  return { logger, flush: () => destination.flushSync() };
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
