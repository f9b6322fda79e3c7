/**
 * How long the event loop is held by one hostile request of each kind, and by none:
 * everyone else waits that long. A thread sends them one at a time; this one serves, and
 * notes the longest time between two turns of its loop. That time includes what other
 * programs of the machine take: read the median, and let "nothing" say how busy it is.
 *
 *     bun run bench:bodies [rounds]
 */
import { once } from "node:events";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { TestService } from "../tests/support/test-service.ts";
import { HOSTILE_KINDS } from "./hostile-kinds.ts";

const WARM_UP = 3;

type Shot = {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
};
async function serve(rounds: number): Promise<void> {
  const service = await TestService.start();
  const token = await service.token();
  const worker = new Worker(new URL(import.meta.url));
  const ask = async (shot: Shot | null): Promise<number> => {
    worker.postMessage(shot);
    const [status] = (await once(worker, "message")) as [number];
    return status;
  };

  const measure = async (
    title: string,
    shotAt: (path: string, etag: string) => Shot | null,
  ): Promise<void> => {
    const held: number[] = [];
    let status = 0;
    let bytes = 0;
    for (let round = 0; round < rounds + WARM_UP; round += 1) {
      // A customer of its own, so that a write names the tag that is current.
      const { path, etag } = await service.customer();
      const shot = shotAt(path, etag);
      bytes = Buffer.byteLength(shot?.body ?? "");
      const loop = new HeldLoop();
      status = await ask(shot);
      if (round >= WARM_UP) held.push(loop.stop());
      else loop.stop();
      service.logLines.length = 0;
    }
    held.sort((a, b) => a - b);
    const times = [held[0], held[Math.floor(held.length / 2)], held.at(-1)].map((ms = 0) => ms.toFixed(2));
    console.log(`| ${[title, bytes, status === 0 ? "" : status, ...times].join(" | ")} |`);
  };

  console.log(`| request | body bytes | status | least ms | median of ${rounds} | most |`);
  console.log("|---|---|---|---|---|---|");
  await measure("nothing", () => null);
  for (const { title, method = "PUT", path: target, headers, body } of HOSTILE_KINDS) {
    await measure(title, (path, etag) => ({
      method,
      url: `${service.url}${target ?? path}`,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === null ? {} : { "content-type": "application/json" }),
        ...(method === "PUT" ? { "if-match": etag } : {}),
        ...headers,
      },
      body,
    }));
  }
  await worker.terminate();
  await service.stop();
}

/** The longest time between two turns of this thread's event loop, in ms. */
class HeldLoop {
  #longest = 0;
  #last = performance.now();
  #next = setImmediate(() => this.#turn());

  stop(): number {
    clearImmediate(this.#next);
    this.#note();
    return this.#longest;
  }

  #turn(): void {
    this.#note();
    this.#next = setImmediate(() => this.#turn());
  }

  #note(): void {
    const now = performance.now();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
  }
}

/** Sends what it is handed, reads the answer whole, and says its status; 0 for nothing sent. */
function shoot(): void {
  parentPort?.on("message", async (shot: Shot | null) => {
    if (shot === null) {
      await Bun.sleep(20);
      parentPort?.postMessage(0);
      return;
    }
    const { url, method, headers, body } = shot;
    const response = await fetch(url, { method, headers, ...(body === null ? {} : { body }) });
    await response.arrayBuffer();
    parentPort?.postMessage(response.status);
  });
}

if (isMainThread) await serve(Number(process.argv[2] ?? 15));
else shoot();
