import { expect } from "bun:test";
import { RawConnection, rawRequest } from "../http/raw-connection.ts";

const CUSTOMERS = 4;
const WRITERS = 12;
const READERS = 4;

type Counter = { readonly path: string; acknowledged: number; refused: number };

/**
 * Clients that count: each reads a customer whose name is a number, and writes the next number with the
 * entity-tag that it read, for as long as the load lasts; others only read. Every number that was
 * acknowledged is there in the end, once: one that was lost or written over would be missing from the count.
 */
export class CountingClients {
  readonly #port: number;
  readonly #authorization: string;
  readonly #counters: Counter[] = [];
  #running: Promise<unknown> = Promise.resolve();
  #isOver = false;
  /** Reads that were answered, also those of the writers. */
  reads = 0;
  #wake: (() => void)[] = [];

  constructor(port: number, token: string) {
    this.#port = port;
    this.#authorization = `Authorization: Bearer ${token}`;
  }

  async start(): Promise<void> {
    const connection = await RawConnection.open(this.#port);
    for (let n = 0; n < CUSTOMERS; n += 1) {
      const body = Buffer.from('{"name":"0","email":"counter@example.com"}');
      const lines = [this.#authorization, "Content-Type: application/json"];
      const reply = await connection.send(rawRequest("POST", "/customers?fields=id", lines, body));
      const { id } = JSON.parse(reply?.body ?? "") as { id: string };
      this.#counters.push({ path: `/customers/${id}`, acknowledged: 0, refused: 0 });
    }
    connection.close();
    this.#running = Promise.all([
      ...Array.from({ length: WRITERS }, (_, n) => this.#run(n, true)),
      ...Array.from({ length: READERS }, (_, n) => this.#run(n, false)),
    ]);
  }

  get acknowledged(): number {
    return this.#counters.reduce((sum, counter) => sum + counter.acknowledged, 0);
  }

  /** Writes that were answered 503. */
  get refused(): number {
    return this.#counters.reduce((sum, counter) => sum + counter.refused, 0);
  }

  /** Waits until this holds; looked at after each answer. Fails with what a client failed with. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await Promise.race([new Promise<void>((wake) => this.#wake.push(wake)), this.#running]);
  }

  /**
   * Ends the load.
   *
   * @returns for each customer what was acknowledged, what was refused, and the number that is stored
   */
  async stop(): Promise<{ acknowledged: number; refused: number; stored: number }[]> {
    this.#isOver = true;
    await this.#running;
    const connection = await RawConnection.open(this.#port);
    const counts: { acknowledged: number; refused: number; stored: number }[] = [];
    for (const { path, acknowledged, refused } of this.#counters) {
      counts.push({ acknowledged, refused, stored: (await this.#read(connection, path)).number });
    }
    connection.close();
    return counts;
  }

  async #run(client: number, isWriter: boolean): Promise<void> {
    const connection = await RawConnection.open(this.#port);
    const seen = new Map<string, number>();
    for (let step = client; !this.#isOver; step += 1) {
      const counter = this.#counters[step % CUSTOMERS];
      if (counter === undefined) throw new Error("nothing was made");
      const { etag, number } = await this.#read(connection, counter.path);
      // Nobody sees a count run backwards.
      expect(number).toBeGreaterThanOrEqual(seen.get(counter.path) ?? 0);
      seen.set(counter.path, number);
      if (isWriter) await this.#write(connection, counter, etag, number + 1);
      for (const wake of this.#wake.splice(0)) wake();
    }
    connection.close();
  }

  async #read(connection: RawConnection, path: string): Promise<{ etag: string; number: number }> {
    const reply = await connection.send(rawRequest("GET", `${path}?fields=name`, [this.#authorization]));
    expect(reply?.status).toBe(200);
    this.reads += 1;
    const { name } = JSON.parse(reply?.body ?? "") as { name: string };
    return { etag: reply?.headers.get("etag") ?? "", number: Number(name) };
  }

  async #write(connection: RawConnection, counter: Counter, etag: string, number: number): Promise<void> {
    const lines = [this.#authorization, `If-Match: ${etag}`, "Content-Type: application/json"];
    const body = Buffer.from(JSON.stringify({ name: `${number}` }));
    const reply = await connection.send(rawRequest("PATCH", counter.path, lines, body));
    if (reply?.status === 204) counter.acknowledged += 1;
    else if (reply?.status === 503) {
      expect(reply.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
      counter.refused += 1;
    } else expect(reply?.status).toBe(412);
  }
}
