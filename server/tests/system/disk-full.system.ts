import { afterEach, beforeEach, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { CountingClients } from "../support/service/counting-clients.ts";
import { Workplace } from "../support/service/server-process.ts";
import type { Reply } from "../support/service/test-service.ts";

let place: Workplace;
let disk: string;

/** A file system of its own, of two megabytes: as root, since it is mounted. */
beforeEach(() => {
  place = new Workplace();
  disk = `${place.path}/disk`;
  mkdirSync(disk);
  run("mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", disk);
  place.database = `${disk}/customers.db`;
});
afterEach(async () => {
  await place.endAll();
  run("umount", disk);
  await place.clear();
});

/** Writes until there is no room. The service writes too, so how much that is can't be known before. */
function fill(file: string): void {
  const page = new Uint8Array(4096);
  for (;;) {
    try {
      appendFileSync(file, page);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOSPC") return;
      throw error;
    }
  }
}

function run(...command: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(command);
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
}

test("a disk that is full: 503 with Retry-After, reads go on, nothing acknowledged is lost, and it is over when there is room", async () => {
  const service = await place.start({ args: ["--no-samples"] });
  const token = place.adminToken;
  const create = (n: number): Promise<Reply> =>
    service.send(token, "POST", "/customers", {
      body: { name: `${n} ${"x".repeat(190)}`, email: `${"x".repeat(60)}@example.com` },
    });
  const first = await create(0);
  // Something else takes all but a little of the room.
  writeFileSync(`${disk}/other`, new Uint8Array(1_400_000));
  const acknowledged: string[] = [first.json.id];
  let refused: Reply | null = null;
  for (let n = 1; n < 5000 && refused === null; n += 1) {
    const reply = await create(n);
    if (reply.status === 201) acknowledged.push(reply.json.id);
    else refused = reply;
  }
  expect(refused?.status).toBe(503);
  expect(refused?.json.code).toBe("store-unavailable");
  expect(refused?.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  const path = `/customers/${first.json.id}`;
  expect((await service.send(token, "GET", path)).etag).toBe(first.etag);
  const put = async (ifMatch: string | null): Promise<Reply> =>
    service.send(token, "PUT", path, {
      body: { name: "Ada", email: "ada@example.com" },
      headers: { "if-match": ifMatch ?? "" },
    });
  // It needs fewer pages than a create, so it may still find room; refused, it changes nothing.
  const small = await put(first.etag);
  expect([204, 503]).toContain(small.status);
  const current = small.status === 204 ? small.etag : first.etag;
  expect((await service.send(token, "GET", path)).etag).toBe(current);
  const backup = await place.run(["backup", `${disk}/backup.db`]);
  expect(backup).toMatchObject({ code: 1, stdout: "" });
  expect(backup.stderr).toContain("full");

  rmSync(`${disk}/other`);
  expect((await put(current)).status).toBe(204);
  const last = await create(9999);
  expect(last.status).toBe(201);
  acknowledged.push(last.json.id);
  await service.end("SIGKILL");

  const later = await place.start();
  for (const id of acknowledged) {
    expect((await later.send(token, "GET", `/customers/${id}?fields=id`)).status).toBe(200);
  }
  expect(await place.run(["check"])).toMatchObject({ code: 0, stderr: "" });
});

test("a disk that fills up amid the writes of many: nothing acknowledged is lost or written over, reads go on, and it is over when there is room", async () => {
  run("mount", "-o", "remount,size=12m", disk);
  const service = await place.start();
  const clients = new CountingClients(service.port, place.adminToken);
  await clients.start();
  await clients.until(() => clients.acknowledged > 200);
  fill(`${disk}/other`);
  const { reads } = clients;
  await clients.until(() => clients.refused > 100 && clients.reads > reads + 1_000);
  rmSync(`${disk}/other`);
  const { acknowledged } = clients;
  await clients.until(() => clients.acknowledged > acknowledged + 200);
  for (const { acknowledged, refused, stored } of await clients.stop()) {
    expect(stored).toBeGreaterThanOrEqual(acknowledged);
    expect(stored).toBeLessThanOrEqual(acknowledged + refused);
  }
  expect(await place.run(["check"])).toMatchObject({ code: 0, stderr: "" });
}, 60_000);

test("a first start on a full disk is refused in a sentence, and succeeds when there is room", async () => {
  writeFileSync(`${disk}/other`, new Uint8Array(2 * 1024 * 1024 - 16_384));
  const outcome = await place.run([], { PORT: "0" });
  expect(outcome).toMatchObject({ code: 1, stdout: "" });
  expect(outcome.stderr).toContain("the disk is full");
  expect(outcome.stderr).not.toMatch(/^ +at /m);
  rmSync(`${disk}/other`);
  const service = await place.start();
  expect((await service.send(place.adminToken, "GET", "/customers")).json.items).toHaveLength(3);
});
