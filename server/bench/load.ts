/**
 * A closed-loop load: so many connections, each sends its next request when the last is
 * answered. Runs as a process of its own: `bun load.ts '{"url":…}'` prints a line when it is warm, and its result as JSON.
 *
 * Writes chain entity-tags: each connection has its own customer and sends
 * the tag that its last write (or read) answered, as a client would.
 */
export type LoadOptions = {
  readonly url: string;
  readonly token: string | null;
  readonly idsFile: string;
  readonly connections: number;
  /** Requests of this time are not counted: server and generator still compile the code that they run. */
  readonly warmUpSeconds?: number;
  /** The load ends this long after the warm-up, or after `requests`. */
  readonly seconds?: number;
  readonly requests?: number;
  /** Share of writes, 0 to 1. */
  readonly writes: number;
  /** All connections read, change and write one customer until accepted. */
  readonly isContended?: boolean;
  /** So many connections more, which ask once before the load begins and then stay open. */
  readonly idle?: number;
};

export type LoadResult = {
  readonly reads: Latencies;
  readonly writes: Latencies;
  readonly stale: number;
  /** Answers that were neither expected nor a conflict, by status. */
  readonly unexpected: Record<string, number>;
  readonly seconds: number;
};

/** Latencies in ms. */
type Latencies = {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
};

type Sample = {
  reads: number[];
  writes: number[];
  stale: number;
  unexpected: Record<string, number>;
};

async function run(options: LoadOptions): Promise<LoadResult> {
  const ids = (await Bun.file(options.idsFile).text()).split("\n");
  const idle = await idleConnections(options, ids[0] ?? "");
  const sample: Sample = { reads: [], writes: [], stale: 0, unexpected: {} };
  const warmAt = performance.now() + (options.warmUpSeconds ?? 0) * 1000;
  const endsAt = warmAt + (options.seconds ?? Number.POSITIVE_INFINITY) * 1000;
  let startedAt = 0;
  const begin = (): void => {
    Object.assign(sample, { reads: [], writes: [], stale: 0 });
    startedAt = performance.now();
    console.log("warm");
  };
  let budget = options.requests ?? Number.POSITIVE_INFINITY;
  const mayGoOn = (): boolean => {
    const now = performance.now();
    if (startedAt === 0 && now >= warmAt) begin();
    budget -= 1;
    return budget >= 0 && now < endsAt;
  };
  await Promise.all(
    Array.from({ length: options.connections }, async (_, index) => {
      const connection = await Connection.open(options.url, options.token);
      const own = ids[options.isContended === true ? 0 : index] ?? "";
      if (options.isContended === true) await contend(connection, own, sample, mayGoOn, index);
      else await mix(connection, own, ids, options.writes, sample, mayGoOn);
      connection.close();
    }),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  for (const connection of idle) connection.close();
  return {
    reads: latencies(sample.reads),
    writes: latencies(sample.writes),
    stale: sample.stale,
    unexpected: sample.unexpected,
    seconds,
  };
}

/** Opened a few at a time, as the queue of a listening socket is short. */
async function idleConnections(
  { url, token, idle = 0 }: LoadOptions,
  id: string,
): Promise<readonly Connection[]> {
  const open: Connection[] = [];
  while (open.length < idle) {
    const few = Array.from({ length: Math.min(100, idle - open.length) }, async () => {
      const connection = await Connection.open(url, token);
      const { status } = await connection.get(id);
      if (status !== 200) throw new Error(`connection ${open.length} of ${idle} was answered ${status}`);
      return connection;
    });
    open.push(...(await Promise.all(few)));
  }
  return open;
}

async function mix(
  connection: Connection,
  own: string,
  ids: readonly string[],
  writes: number,
  sample: Sample,
  mayGoOn: () => boolean,
): Promise<void> {
  let { etag } = await connection.get(own);
  for (let round = 0; mayGoOn(); round += 1) {
    const startedAt = performance.now();
    if (Math.random() >= writes) {
      const reply = await connection.get(ids[Math.floor(Math.random() * ids.length)] ?? "");
      if (reply.status === 200) sample.reads.push(performance.now() - startedAt);
      else note(sample, reply.status);
      continue;
    }
    const reply = await connection.put(own, etag, `Writer ${round}`);
    if (reply.status === 204) {
      sample.writes.push(performance.now() - startedAt);
      etag = reply.etag;
    } else note(sample, reply.status);
  }
}

async function contend(
  connection: Connection,
  id: string,
  sample: Sample,
  mayGoOn: () => boolean,
  writer: number,
): Promise<void> {
  while (mayGoOn()) {
    const read = await connection.get(id);
    const startedAt = performance.now();
    const reply = await connection.put(id, read.etag, `Writer ${writer}`);
    if (reply.status === 204) sample.writes.push(performance.now() - startedAt);
    else if (reply.status === 412) sample.stale += 1;
    else note(sample, reply.status);
  }
}

function note(sample: Sample, status: number): void {
  sample.unexpected[status] = (sample.unexpected[status] ?? 0) + 1;
}

function latencies(values: number[]): Latencies {
  values.sort((a, b) => a - b);
  const at = (share: number): number =>
    values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;
  return { count: values.length, p50: at(0.5), p99: at(0.99) };
}

type Reply = { readonly status: number; readonly etag: string };

/** One keep-alive connection, one request at a time. */
class Connection {
  readonly #authorization: string;
  #socket: Bun.Socket | null = null;
  #received = "";
  #answer: ((reply: Reply) => void) | null = null;

  private constructor(token: string | null) {
    this.#authorization = token === null ? "" : `Authorization: Bearer ${token}\r\n`;
  }

  static async open(url: string, token: string | null): Promise<Connection> {
    const connection = new Connection(token);
    const { hostname, port } = new URL(url);
    connection.#socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_, chunk) => connection.#take(chunk.toString("latin1")),
        close: () => connection.#answer?.({ status: 0, etag: "" }),
      },
    });
    return connection;
  }

  get(id: string): Promise<Reply> {
    return this.#send(
      `GET /customers/${id}?fields=name,email HTTP/1.1\r\nHost: localhost\r\n${this.#authorization}\r\n`,
    );
  }

  put(id: string, etag: string, name: string): Promise<Reply> {
    const body = `{"name":"${name}","email":"writer@example.com"}`;
    return this.#send(
      `PUT /customers/${id} HTTP/1.1\r\nHost: localhost\r\n${this.#authorization}If-Match: ${etag}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  }

  close(): void {
    this.#answer = null;
    this.#socket?.end();
  }

  #send(text: string): Promise<Reply> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#socket?.write(text);
    });
  }

  #take(text: string): void {
    this.#received += text;
    const end = this.#received.indexOf("\r\n\r\n");
    if (end === -1) return;
    const head = this.#received.slice(0, end);
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? "0");
    if (this.#received.length < end + 4 + length) return;
    this.#received = "";
    const answer = this.#answer;
    this.#answer = null;
    answer?.({ status: Number(head.slice(9, 12)), etag: /\r\netag: (\S+)/i.exec(head)?.[1] ?? "" });
  }
}

if (import.meta.main) {
  console.log(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "{}") as LoadOptions)));
  process.exit(0);
}
