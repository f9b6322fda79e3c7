import { readdirSync, readFileSync } from "node:fs";
import type { Logger } from "pino";

const LOOK_EVERY_MS = 1_000;
/**
 * Share of the limit from which connections are closed
 * after each reply, and below which they are kept again.
 */
const SCARCE_SHARE = 0.9;
const PLENTY_SHARE = 0.8;

/** The limit at the start; infinite where there is none, NaN where the system does not say. */
export const DESCRIPTORS_MAX = readLimit();

/** @returns NaN where the system does not say */
export function openDescriptors(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch (error) {
    // Counting needs a descriptor too.
    return (error as NodeJS.ErrnoException).code === "EMFILE" ? DESCRIPTORS_MAX : Number.NaN;
  }
}

function readLimit(): number {
  try {
    const soft = /^Max open files\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? "";
    return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft || Number.NaN);
  } catch {
    return Number.NaN;
  }
}

/**
 * Watches the file descriptors, of which each connection takes one. Bun accepts
 * connections as long as there are any, and offers no limit. When there are none it
 * serves the connections that it has, while new ones, health probes included, wait unseen
 * until others end; idle ones would keep everyone out for as long as IDLE_TIMEOUT.
 */
export class DescriptorWatch {
  readonly #logger: Logger;
  readonly #closeIdle: () => void;
  #areScarce = false;

  /**
   * @param closeIdle closes the connections that wait for a next request; called while no descriptor is left
   */
  constructor(logger: Logger, closeIdle: () => void) {
    this.#logger = logger;
    this.#closeIdle = closeIdle;
    setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
  }

  /** Whether each reply should be its connection's last. */
  get areScarce(): boolean {
    return this.#areScarce;
  }

  #look(): void {
    const open = openDescriptors();
    const wereScarce = this.#areScarce;
    // Not at the first look: replies since then have ended the connections that are in use.
    if (wereScarce && open >= DESCRIPTORS_MAX) this.#closeIdle();
    this.#areScarce = open >= DESCRIPTORS_MAX * (wereScarce ? PLENTY_SHARE : SCARCE_SHARE);
    if (wereScarce || !this.#areScarce) return;
    this.#logger.warn(
      { open, max: DESCRIPTORS_MAX },
      "file descriptors run out: connections are closed after each reply. Raise the limit (ulimit -n, LimitNOFILE=), or let fewer clients keep connections",
    );
  }
}
