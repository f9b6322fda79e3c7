/** The client behind a real nginx, set up in the ways that break conditional writes. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { OURS, TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";
import * as faults from "./support/faults.ts";
import { startFaultyProxy } from "./support/faulty-proxy.ts";

const stops: (() => unknown)[] = [];
let command: string[];
beforeAll(async () => {
  command = [await compiledClient()];
}, 120_000);
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

/**
 * nginx listens on a socket file, since it can't say which free port it took; a pipe of ours gives it one.
 */
async function startNginx(http: string, location: string): Promise<string> {
  const directory = temporaryDirectory();
  const socket = join(directory.path, "nginx.sock");
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${directory.path}/${name};`,
  );
  writeFileSync(
    join(directory.path, "nginx.conf"),
    `${process.getuid?.() === 0 ? "user root;" : ""} daemon off; pid ${directory.path}/pid; error_log ${directory.path}/error.log; worker_processes 1; events {}
     http { access_log off; ${paths.join(" ")} ${http}
       server { listen unix:${socket}; location / { ${location} } } }`,
  );
  const nginx = Bun.spawn(["nginx", "-p", directory.path, "-c", join(directory.path, "nginx.conf")], {
    stderr: "ignore",
  });
  const front = net.createServer((inbound) => {
    const outbound = net.connect(socket);
    inbound.pipe(outbound).pipe(inbound);
    inbound.on("error", () => outbound.destroy());
    outbound.on("error", () => inbound.destroy());
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  stops.push(async () => {
    front.close();
    nginx.kill();
    await nginx.exited;
    directory[Symbol.dispose]();
  });
  const url = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
  // Until the socket is there: each try is a connection of its own, and there is an end to them.
  for (let tries = 0; tries < 200; tries += 1) {
    if (
      await fetch(url).then(
        () => true,
        () => false,
      )
    )
      return url;
    await Bun.sleep(20);
  }
  throw new Error(`nginx did not start: ${await Bun.file(join(directory.path, "error.log")).text()}`);
}

async function behindNginx(http: string, location = "proxy_pass http://up;", upstream = "") {
  const server = startCustomerServer();
  stops.push(server.stop);
  const { id } = server.add({ name: "Ada", email: "ada@example.com" });
  const { host } = new URL(server.url);
  const url = await startNginx(`${http} upstream up { ${upstream} server ${host} max_fails=0; }`, location);
  const update = (...args: string[]) =>
    runClient(["update", id, ...args], { command, env: { CUSTOMERS_URL: url, CUSTOMERS_TOKEN: TOKEN } });
  return { server, id, url, update };
}

describe("nginx", () => {
  test("that compresses weakens the tags of clients that accept that, and not this client's", async () => {
    const { server, id, url, update } = await behindNginx(
      "gzip on; gzip_min_length 1; gzip_proxied any; gzip_types application/json;",
    );
    const compressed = await fetch(`${url}/customers/${id}`, {
      headers: { [OURS.credentials.header]: OURS.credentials.value, "accept-encoding": "gzip" },
    });
    expect(compressed.headers.get("etag")).toStartWith("W/");
    expect(await update("--name", "Eve")).toMatchObject({ exitCode: 0 });
    expect(server.writes).toHaveLength(1);
  });

  test("that repeats a write whose reply was lost answers 412 to its own success: exit 0, one write", async () => {
    const server = startCustomerServer();
    stops.push(server.stop);
    const { id } = server.add({ name: "Ada" });
    const lossy = await startFaultyProxy(server.url, faults.dropReplies(Number.POSITIVE_INFINITY));
    stops.push(lossy.stop);
    // The lossy way first; only when it fails, the sound one.
    const url = await startNginx(
      `upstream up { server ${new URL(lossy.url).host} max_fails=0; server ${new URL(server.url).host} backup; }`,
      "proxy_pass http://up; proxy_next_upstream error timeout non_idempotent;",
    );
    const { exitCode, stderr } = await runClient(["update", id, "--name", "Eve", "--on-conflict", "fail"], {
      command,
      env: { CUSTOMERS_URL: url, CUSTOMERS_TOKEN: TOKEN },
    });
    expect({ exitCode, writes: server.writes.length, name: server.read(id)?.name, stderr }).toMatchObject({
      exitCode: 0,
      writes: 1,
      name: "Eve",
    });
  });

  test("that limits requests and gives no Retry-After is waited for", async () => {
    const { server, update } = await behindNginx(
      "limit_req_zone $scheme zone=z:64k rate=2r/s;",
      "limit_req zone=z nodelay; limit_req_status 429; proxy_pass http://up;",
    );
    const { exitCode, stderr } = await update("--name", "Eve");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 0, writes: 1 });
    expect(stderr).toMatch(/updated: [2-9]\d* attempts, 0 conflicts/);
  });

  test("that answers reads from a cache is found out: exit 5, and the cache is named", async () => {
    const { server, id, update } = await behindNginx(
      "proxy_cache_path cache keys_zone=c:64k;",
      "proxy_cache c; proxy_cache_valid 200 1h; proxy_ignore_headers Cache-Control Vary; proxy_pass http://up;",
    );
    expect(await update("--name", "Eve", "--dry-run")).toMatchObject({ exitCode: 0 }); // now it is in the cache
    server.change(id, { email: "new@example.com" });
    const { exitCode, stderr } = await update("--name", "Eve", "--max-attempts", "3");
    expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 5, writes: 0 });
    expect(stderr).toContain("a cache answers the reads");
  });
});
