/** What a run leaves behind when it is stopped: nothing. */
import { afterEach, expect, test } from "bun:test";
import { readReport } from "../report/report-file.ts";
import { CREDENTIALS, type Faulty } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { type SoundServer, startSoundServer } from "../self/service/sound-server.ts";
import { ended, Workplace } from "./testing-cli.ts";

const open: { server: SoundServer; place: Workplace }[] = [];
afterEach(async () => {
  for (const { server, place } of open.splice(0)) {
    await server.close();
    place.remove();
  }
});

async function begin(seeded: number, faulty?: Faulty, further: readonly string[] = []) {
  // Answers take their time, so that the run is still under way when it is stopped.
  const server = await startSoundServer({ ...PLAIN, seeded, latencyMs: 3 }, faulty);
  const { main, limited, other } = CREDENTIALS;
  const place = new Workplace({ MAIN_KEY: main, LIMITED_KEY: limited, OTHER_KEY: other });
  open.push({ server, place });
  const given = server.seeded.flatMap((id) => ["--customer-id", id]);
  const words = [
    "run",
    "--base-url",
    server.url,
    "--header-env",
    "Authorization: Bearer $MAIN_KEY",
    ...given,
    "--rounds",
    "500",
    ...further,
  ];
  return { server, place, child: place.start(...words) };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await Bun.sleep(2);
}

const changed = (server: SoundServer) => server.customers().some(({ name }) => name.startsWith("Kit "));

test.each(["SIGINT", "SIGTERM"] as const)("%s cleans up and ends with 130", async (signal) => {
  const { server, place, child } = await begin(0);
  await until(() => server.customers().length > 0);
  child.kill(signal);
  expect((await ended(child)).exitCode).toBe(130);
  expect(server.customers()).toEqual([]);
  expect(readReport(place.path("conformance-report", "report.json"))).toMatchObject({
    verdict: "interrupted",
    exitCode: 130,
  });
});

async function removedAfterKill({ server, place, child }: Awaited<ReturnType<typeof begin>>): Promise<void> {
  child.kill("SIGKILL");
  await child.exited;
  const { exitCode, stdout } = await place.kit("cleanup");
  expect(`${exitCode} ${stdout}`).toMatch(/^0 /);
  // A create whose answer the kill cut off cannot be found on a deployment that lists nothing: it is named.
  const unseen = stdout
    .split("\n")
    .filter((line) => line.includes("whether it happened can't be seen")).length;
  expect(server.customers().length).toBeLessThanOrEqual(unseen);
}

test("after kill -9 cleanup removes what was made", async () => {
  const { server, place, child } = await begin(0);
  await until(() => server.customers().length > 0 && changed(server));
  await removedAfterKill({ server, place, child });
  expect((await place.kit("cleanup")).stdout).toContain("0 customers removed or restored, 0 left.");
});

/** The limited caller may not delete, and the main one does not see what another tenant has made. */
const keepsFromLimited: Faulty = (service) => ({
  around: async (request, next) =>
    request.method === "DELETE" && service.caller(request) === "limited"
      ? service.refuse(403, "no-rights")
      : await next(request),
});

test.each(["limited", "other"] as const)(
  "after kill -9 cleanup removes what the %s caller has made for itself",
  async (owner) => {
    const { server, place, child } = await begin(0, keepsFromLimited, [
      "--limited-header-env",
      "Authorization: Bearer $LIMITED_KEY",
      "--other-tenant-header-env",
      "Authorization: Bearer $OTHER_KEY",
      "--only",
      "IFM-36",
    ]);
    await until(() => server.customers().some((customer) => customer.owner === owner));
    await removedAfterKill({ server, place, child });
  },
);

/** Bodies name their members otherwise than answers do. */
const smallInBodies: Faulty = () => ({
  around: async (request, next) => {
    if (request.method !== "PUT") return next(request);
    const text = (await request.body()).toString();
    if (/"(?:Name|Email)"/.test(text)) return { status: 400, headers: [] };
    const body = Buffer.from(text.replace('"name"', '"Name"').replace('"email"', '"Email"'));
    return next({ ...request, body: async () => body });
  },
});

test.each([
  ["", undefined],
  [", also where bodies have other member names", smallInBodies],
] as const)("after kill -9 cleanup gives given customers back their values%s", async (_, faulty) => {
  const { server, place, child } = await begin(1, faulty);
  await until(() => changed(server));
  child.kill("SIGKILL");
  await child.exited;
  const { exitCode } = await place.kit("cleanup");
  expect(exitCode).toBe(0);
  expect(server.customers().map(({ name, email }) => ({ name, email }))).toEqual([
    { name: "Given 0", email: "given-0@example.org" },
  ]);
});

test("cleanup without the credentials says which it needs, and forgets nothing", async () => {
  const { server, place, child } = await begin(0);
  await until(() => server.customers().length > 0);
  child.kill("SIGKILL");
  await child.exited;
  const without = { ...place.env };
  place.env["MAIN_KEY"] = undefined;
  const refused = await place.kit("cleanup");
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain("MAIN_KEY");
  Object.assign(place.env, without);
  expect((await place.kit("cleanup")).exitCode).toBe(0);
});
