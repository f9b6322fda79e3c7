import type { Elysia } from "elysia";
import type { TlsFiles } from "./config/tls-files.ts";
import { CommandRefused } from "./domain/command-refused.ts";
import { hostInUrl } from "./domain/network/network.ts";

export type Address = {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  /** The setting that names the port. */
  readonly portVariable: string;
  readonly isShared: boolean;
};

type ListenerOptions = {
  readonly address: Address;
  readonly tls: TlsFiles | null;
  readonly idleTimeoutSeconds: number;
  readonly createApp: () => Elysia;
  /** Called with a sentence when the address cannot be listened on for a while. */
  readonly onFault?: (sentence: string) => void;
};

const RETRY_MS = 100;

/** One address that the service listens on. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly port: number;
  /** Null while another process has the port. */
  #app: Elysia | null;
  #retry: NodeJS.Timeout | undefined;
  /** Apps whose certificate was replaced, while they finish their requests. */
  readonly #replaced = new Set<Elysia>();
  #isStopped = false;

  /** @throws CommandRefused */
  constructor(options: ListenerOptions) {
    this.#options = options;
    try {
      this.#app = this.#listen(options.address.port, options.tls);
    } catch (error) {
      throw listenRefused(options.address, error);
    }
    this.port = this.#app?.server?.port ?? options.address.port;
  }

  get url(): string {
    const { address, tls } = this.#options;
    return `${tls === null ? "http" : "https"}://${hostInUrl(address.host)}:${this.port}`;
  }

  /**
   * Serves new connections with another certificate. Bun reads a certificate once per
   * listener, so the listener is replaced: requests in flight are finished, idle
   * connections are closed, and one that is opened in that very moment may be refused.
   * Where another process takes the port in that moment, it is tried again until it is free.
   * Once it was stopped, nothing is listened on again.
   */
  replaceTls(tls: TlsFiles): void {
    if (this.#isStopped) return;
    const old = this.#app;
    if (old !== null) {
      this.#replaced.add(old);
      void old.stop().finally(() => this.#replaced.delete(old));
      this.#app = null;
    }
    clearTimeout(this.#retry);
    this.#listenAgain(tls, this.#options.onFault ?? (() => {}));
  }

  #listenAgain(tls: TlsFiles, onFault: (sentence: string) => void): void {
    try {
      this.#app = this.#listen(this.port, tls);
    } catch (error) {
      const { message } = listenRefused({ ...this.#options.address, port: this.port }, error);
      onFault(`${message} It is tried again every ${RETRY_MS} ms.`);
      this.#retry = setTimeout(() => this.#listenAgain(tls, () => {}), RETRY_MS);
    }
  }

  /** Closes the connections that wait for a next request. */
  closeIdle(): void {
    const server = this.#app?.server ?? null;
    // Elysia's type of a server has less than Bun's.
    if (server === null || !("closeIdleConnections" in server)) return;
    if (typeof server.closeIdleConnections === "function") server.closeIdleConnections();
  }

  /**
   * Accepts no more connections and finishes the requests in flight.
   *
   * @returns false when some were cut off
   */
  async stop(drainMs: number): Promise<boolean> {
    this.#isStopped = true;
    clearTimeout(this.#retry);
    const apps = [...(this.#app === null ? [] : [this.#app]), ...this.#replaced];
    const drained = Promise.all(apps.map((app) => app.stop())).then(() => true);
    if (await Promise.race([drained, Bun.sleep(drainMs).then(() => false)])) return true;
    await Promise.all(apps.map((app) => app.stop(true)));
    return false;
  }

  #listen(port: number, tls: TlsFiles | null): Elysia {
    const { address, idleTimeoutSeconds, createApp } = this.#options;
    return createApp().listen({
      hostname: address.host,
      port,
      reusePort: address.isShared,
      idleTimeout: idleTimeoutSeconds,
      ...(tls === null ? {} : { tls }),
    });
  }
}

/**
 * Refuses a start on a taken port. The probe listens for a moment, and on a shared port takes
 * connections from the services that listen there.
 *
 * @throws CommandRefused
 */
export function refuseTakenPort(address: Address): void {
  const { host: hostname, port, isShared: reusePort } = address;
  try {
    Bun.serve({ hostname, port, reusePort, fetch: () => new Response() }).stop(true);
  } catch (error) {
    throw listenRefused(address, error);
  }
}

function listenRefused({ host, port, portVariable }: Address, error: unknown): CommandRefused {
  const { code, message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${port} on ${host} is already in use. Choose another with ${portVariable}=… (0 picks a free one).`,
    EADDRNOTAVAIL: `${host} is not an address of this machine. Set HOST to one that is, such as 127.0.0.1 or 0.0.0.0.`,
    EACCES: `This user may not listen on port ${port}. Choose one from 1024 on with ${portVariable}=….`,
  };
  return new CommandRefused(
    reasons[code ?? ""] ??
      `${host}:${port} cannot be listened on: ${message}. Set HOST to an address of this machine, such as 127.0.0.1 or 0.0.0.0.`,
  );
}
