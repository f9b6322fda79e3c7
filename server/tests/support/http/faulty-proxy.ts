import { connect, createServer, type Socket } from "node:net";

/** What a network does to bytes that pass. */
type Fault =
  /** Nothing. */
  | "none"
  /** No byte passes either way, and no connection ends: the other end has vanished. */
  | "black-hole"
  /** What the client sends arrives; what the server answers does not, and the connection ends with it. */
  | "lost-answer";

/** A proxy of TCP between a client and a server on this machine, whose faults a test switches. */
export class FaultyProxy {
  readonly port: number;
  readonly #server: ReturnType<typeof createServer>;
  readonly #pairs: Set<readonly [Socket, Socket]>;
  fault: Fault = "none";
  /** Where new connections lead. */
  targetPort: number;
  /** Called with what the client sends, before it is passed on. */
  onRequest: (bytes: Buffer) => void = () => {};
  /** How many answers were lost. */
  lostAnswers = 0;

  private constructor(server: ReturnType<typeof createServer>, port: number, targetPort: number) {
    this.targetPort = targetPort;
    this.#server = server;
    this.port = port;
    this.#pairs = new Set();
  }

  static async start(targetPort: number): Promise<FaultyProxy> {
    const server = createServer();
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
    const proxy = new FaultyProxy(server, await promise, targetPort);
    server.on("connection", (client) => proxy.#join(client, connect(proxy.targetPort, "127.0.0.1")));
    return proxy;
  }

  /** The URL of a database, through the proxy. */
  through(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.port = String(this.port);
    return url.href;
  }

  /** Ends every connection. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  stop(): void {
    this.cut();
    this.#server.close();
  }

  #join(client: Socket, server: Socket): void {
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    client.on("data", (bytes) => {
      if (this.fault === "black-hole") return;
      this.onRequest(bytes as Buffer);
      server.write(bytes);
    });
    server.on("data", (bytes) => {
      if (this.fault === "none") client.write(bytes);
      if (this.fault !== "lost-answer") return;
      this.lostAnswers += 1;
      client.destroy();
      server.destroy();
    });
    for (const [one, other] of [pair, [server, client] as const]) {
      // A fault is what the test is about.
      one.on("error", () => {});
      one.on("close", () => {
        other.destroy();
        this.#pairs.delete(pair);
      });
    }
  }
}
