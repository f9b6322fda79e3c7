import pino, { type Logger } from "pino";
import { SonicBoom } from "sonic-boom";
import type { LogFormat } from "./config.ts";

/** The log: on stderr, since stdout is for what a caller may want to read. Written without holding up requests. */
export type Log = {
  readonly logger: Logger;
  /** Writes out what was logged, as far as whoever reads stderr takes it in time; nothing can be logged afterwards. */
  readonly close: () => Promise<void>;
};

/** So much may wait for a slow reader of stderr; lines past it are dropped and counted. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
const CLOSE_MS = 2_000;

export function openLog(level: string, format: LogFormat): Log {
  // Not pino.destination, which at exit waits without end for a reader of stderr that has stalled.
  const destination = new SonicBoom({ fd: 2, sync: false, maxLength: WAITING_BYTES_MAX });
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  const logger =
    format === "json"
      ? pino(options, destination)
      : pino(options, { write: (line: string) => void destination.write(textLine(line)) });
  let dropped = 0;
  destination.on("drop", () => {
    dropped += 1;
  });
  destination.on("drain", () => {
    if (dropped === 0) return;
    logger.warn({ dropped }, "log lines were dropped: stderr was not read or not written in time");
    dropped = 0;
  });
  // A log that can't be written (a full disk, a reader that is gone) must not end the service; the next line tries again.
  destination.on("error", () => {});
  const close = async (): Promise<void> => {
    const written = new Promise<void>((done) => {
      destination.once("close", done);
      destination.once("error", () => done());
    });
    destination.end();
    await Promise.race([written, Bun.sleep(CLOSE_MS)]);
  };
  return { logger, close };
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
