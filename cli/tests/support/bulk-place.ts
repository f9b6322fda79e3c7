/**
 * A server, a directory for the input and its companions, and the compiled client, for tests of bulk
 * commands.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Run, type RunOptions, runClient, spawnClient, temporaryDirectory } from "./client.ts";
import { startCustomerServer } from "./customer-server.ts";
import { OURS, TOKEN } from "./dialect.ts";
import { compiledClient } from "./executable.ts";
import { type Fault, startFaultyProxy } from "./faulty-proxy.ts";

const stops: (() => unknown)[] = [];

/** For afterAll. */
export async function stopBulkPlaces(): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop();
}

export async function bulkPlace(dialect = OURS) {
  const command = [await compiledClient()];
  const server = startCustomerServer(dialect);
  const directory = temporaryDirectory();
  stops.push(server.stop, () => directory[Symbol.dispose]());
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN };
  return {
    server,
    env,
    directory: directory.path,
    command,
    file(name: string, content: string | Uint8Array): string {
      const path = join(directory.path, name);
      writeFileSync(path, content);
      return path;
    },
    /** Runs the client to its end. */
    customers: (args: string[], options: RunOptions & { home?: string } = {}): Promise<Run> =>
      runClient(args, { env, ...options }),
    start: (args: string[], options: RunOptions = {}) => spawnClient(args, { command, env, ...options }),
    /** The environment that leads through a faulty proxy. */
    async through(fault: Fault) {
      const proxy = await startFaultyProxy(server.url, fault);
      stops.push(proxy.stop);
      return { proxy, env: { ...env, CUSTOMERS_URL: proxy.url } };
    },
  };
}

export const csv = (lines: string[]): string => `${lines.join("\n")}\n`;
export const namesOf = (customers: { name: string }[]): string[] => customers.map(({ name }) => name);
