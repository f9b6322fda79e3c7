/**
 * A program: two services on one port are replaced in turn while eight clients read on connections that they keep.
 * Prints how often each outcome was met, as JSON.
 */
import { Agent, request } from "node:http";
import { ServerProcess, Workplace } from "./server-process.ts";

const CLIENTS = 8;
const ROUNDS = 2;

const place = new Workplace();
await place.prepare();
const token = place.adminToken;
const outcomes: Record<string, number> = {};
const first = await start("0");
const port = `${first.port}`;
const instances = [first, await start(port)];
const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
let isOver = false;
const clients = Array.from({ length: CLIENTS }, async () => {
  while (!isOver) {
    const outcome = await read(`http://127.0.0.1:${port}/customers?limit=1`);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
});
for (let round = 0; round < ROUNDS; round += 1) {
  for (const n of instances.keys()) {
    await instances[n]?.end();
    instances[n] = await start(port);
  }
}
isOver = true;
await Promise.all(clients);
agent.destroy();
for (const instance of instances) await instance.end();
await place.clear();
console.log(JSON.stringify(outcomes));

function start(port: string): Promise<ServerProcess> {
  const env = { PORT: port, REUSE_PORT: "1", STOP_GRACE: "0.25" };
  return ServerProcess.start(place.database, { env, services: 1 });
}

/** @returns the status, or the error's code */
function read(url: string): Promise<string> {
  return new Promise((resolve) => {
    const sent = request(url, { agent, headers: { authorization: `Bearer ${token}` } }, (reply) => {
      reply.resume();
      reply.on("end", () => resolve(`${reply.statusCode}`));
    });
    sent.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sent.end();
  });
}
