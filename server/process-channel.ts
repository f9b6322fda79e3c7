import type { FromProcess, ToProcess } from "./processes.ts";
import type { Metrics } from "./telemetry/metrics.ts";

const TELL_EVERY_MS = 1_000;
/** The process that started this one answers from what it has; if it is gone, our own metrics are all there are. */
const SUM_MS = 2_000;

/** The other end of {@link FromProcess}: of a process that was started as one of several. */
export class ProcessChannel {
  readonly #waiting = new Map<number, (text: string) => void>();
  #metrics: Metrics | null = null;
  #scrapes = 0;

  constructor() {
    process.on("message", (message: ToProcess) => {
      if (message.kind === "tell-metrics") void this.#tell();
      else this.#waiting.get(message.scrape)?.(message.text);
    });
  }

  /** Says that this process listens, and tells its metrics from now on. */
  listening(port: number, metrics: Metrics): void {
    this.#metrics = metrics;
    send({ kind: "listening", port });
    setInterval(() => void this.#tell(), TELL_EVERY_MS).unref();
  }

  /** The exposition of the sum over all processes. */
  async sum(): Promise<string> {
    this.#scrapes += 1;
    const scrape = this.#scrapes;
    const text = await new Promise<string | null>((resolve) => {
      const timer = setTimeout(() => resolve(null), SUM_MS);
      this.#waiting.set(scrape, (sum) => {
        clearTimeout(timer);
        resolve(sum);
      });
      send({ kind: "scraped", scrape });
    });
    this.#waiting.delete(scrape);
    return text ?? (await this.#metrics?.text()) ?? "";
  }

  async #tell(): Promise<void> {
    if (this.#metrics !== null) send({ kind: "metrics", snapshot: await this.#metrics.snapshot() });
  }
}

function send(message: FromProcess): void {
  if (process.connected) process.send?.(message);
}
