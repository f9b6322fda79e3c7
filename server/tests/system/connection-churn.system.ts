import { afterEach, beforeEach, expect, test } from "bun:test";
import { Workplace } from "../support/service/server-process.ts";

let place: Workplace;
const storms: ReturnType<typeof Bun.spawn>[] = [];
beforeEach(() => {
  place = new Workplace();
});
afterEach(async () => {
  for (const storm of storms.splice(0)) {
    storm.kill("SIGKILL");
    await storm.exited;
  }
  await place.clear();
});

/**
 * ab (apache2-utils) at full speed, each request on a connection of its own, for as long as the test lasts.
 */
function startStorm(url: string, token: string): void {
  const authorization = `Authorization: Bearer ${token}`;
  const command = ["ab", "-q", "-r", "-t", "60", "-n", "5000000", "-c", "64", "-H", authorization, url];
  storms.push(Bun.spawn(command, { stdout: "ignore", stderr: "ignore" }));
}
const isStorming = (): boolean =>
  storms.every((storm) => storm.exitCode === null && storm.signalCode === null);

test("under a storm of connections writes are answered, revocation holds, the log is written, and SIGTERM is heard", async () => {
  const service = await place.start();
  const token = place.adminToken;
  const created = await place.run(["token", "create", "--role", "viewer", "--client", "v", "--tenant", "t"]);
  const viewer = created.stdout.trim();
  for (let n = 0; n < 2; n += 1) startStorm(`${service.url}/customers?limit=1`, token);
  await service.stderr.line((line) => line.includes('"method":"GET"'));

  for (let n = 0; n < 60; n += 1) {
    const body = { name: `Ada ${n}`, email: "ada@example.com" };
    expect((await service.send(token, "POST", "/customers", { body })).status).toBe(201);
  }
  expect((await service.send(viewer, "GET", "/customers")).status).toBe(200);
  expect((await place.run(["token", "revoke", viewer])).code).toBe(0);
  expect((await service.send(viewer, "GET", "/customers")).status).toBe(401);
  expect(isStorming()).toBe(true);
  service.signal("SIGTERM");
  expect(await service.exited).toBe(0);
  expect(isStorming()).toBe(true);
}, 150_000);
