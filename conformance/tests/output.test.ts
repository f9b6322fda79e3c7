/** Where findings go: they are never lost, and a folder that can't be written is found before the run. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { closeSync, existsSync, openSync, readdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { readReport } from "../report/report-file.ts";
import { FAULTS } from "../self/faults.ts";
import { CREDENTIALS } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { type SoundServer, startSoundServer } from "../self/service/sound-server.ts";
import { ended, KIT, Workplace } from "./testing-cli.ts";

let faulty: SoundServer;
let requests = 0;
const place = new Workplace({ MAIN_KEY: CREDENTIALS.main });

beforeAll(async () => {
  const fault = FAULTS.find(({ rule }) => rule === "IFM-12");
  if (fault === undefined) throw new Error("no fault is named for IFM-12");
  const planted = fault.plant(() => undefined);
  faulty = await startSoundServer({ ...PLAIN, ...fault.deployment }, (service) => {
    const seams = planted(service);
    return {
      ...seams,
      around: async (request, next) => {
        requests += 1;
        return await (seams.around ?? ((each, inner) => inner(each)))(request, next);
      },
    };
  });
  writeFileSync(place.path("file"), "");
});
afterAll(async () => {
  await faulty.close();
  place.remove();
});

const words = () => [
  ...["run", "--base-url", faulty.url, "--header-env", "Authorization: Bearer $MAIN_KEY"],
  ...["--only", "IFM-12"],
];

test.each([
  ["--out below a file", ["--out", "file/reports"], {}, "--out"],
  ["a state folder below a file", [], { CUSTOMERS_CONFORMANCE_STATE: "file/state" }, "journal"],
] as const)("%s: 2 before anything is sent", async (_, more, env, says) => {
  const before = requests;
  const state = place.env["CUSTOMERS_CONFORMANCE_STATE"];
  Object.assign(place.env, env);
  const { exitCode, stderr } = await place.kitHere(...words(), ...more);
  place.env["CUSTOMERS_CONFORMANCE_STATE"] = state;
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(says)]);
  expect(requests).toBe(before);
});

test("a full disk under standard output is no violation: 5, and the findings are shown elsewhere", async () => {
  const full = openSync("/dev/full", "w");
  const child = Bun.spawn([...KIT, ...words()], {
    cwd: place.folder,
    env: place.env,
    stdio: ["ignore", full, "pipe"],
  });
  const [stderr, exitCode] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  closeSync(full);
  expect(exitCode).toBe(5);
  expect(stderr).toContain("IFM-12  MUST");
});

test.if(process.platform === "linux").each([
  ["the help", () => ["--help"]],
  ["a run", words],
  ["wrong usage", () => ["run", "--unknown"]],
])("a pipe stays blocking for the next program that writes to it: %s", async (_, args) => {
  const script = '{ "$@"; grep flags: /proc/self/fdinfo/1; } 2>&1 | tail -n 1';
  const child = Bun.spawn(["sh", "-c", script, "sh", ...KIT, ...args()], {
    cwd: place.folder,
    env: place.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  expect((await ended(child)).stdout).toBe("flags:\t01\n");
});

test("the rerun line runs as printed, for its rule alone, and leaves the full report in place", async () => {
  const { stdout } = await place.kit(...words().slice(0, -1), "IFM-12,ETG-01", "--out", "full");
  const line = /^ +rerun +(.*)$/m.exec(stdout)?.[1] ?? "";
  // A reader of the line has the program, or Bun, on the path.
  const env = { ...place.env, PATH: `${dirname(KIT[0] ?? "")}:${place.env["PATH"]}` };
  const again = await ended(
    Bun.spawn(["sh", "-c", line], { cwd: place.folder, env, stdio: ["ignore", "pipe", "pipe"] }),
  );
  expect([again.exitCode, again.stdout]).toEqual([1, expect.stringContaining("IFM-12  MUST")]);
  expect(readReport(place.path("full", "report.json")).rules).toHaveLength(2);
  expect(readReport(place.path("full", "IFM-12", "report.json")).rules).toHaveLength(1);
});

test("--keep-failing leaves the customer that the curl line names, and cleanup removes it", async () => {
  const deleted = await place.kitHere(...words());
  expect(deleted.stdout).toContain("With --keep-failing the first");
  expect(faulty.customers()).toEqual([]);
  const { exitCode, stdout } = await place.kit(...words(), "--keep-failing");
  expect(exitCode).toBe(1);
  const [customer] = faulty.customers();
  expect(faulty.customers()).toHaveLength(1);
  expect(/^ +curl +(.*)$/m.exec(stdout)?.[1]).toContain(customer?.id ?? "none");
  expect(stdout).toContain(`Left in place by --keep-failing: customer ${customer?.id}`);
  expect((await place.kit("cleanup")).exitCode).toBe(0);
  expect(faulty.customers()).toEqual([]);
});

test("cleanup gives up on a deployment that no longer exists after one request, and --forget drops it", async () => {
  const server = await startSoundServer(PLAIN);
  const child = place.start("run", "--base-url", server.url, ...words().slice(3, 5), "--rounds", "500");
  while (server.customers().length < 2) await Bun.sleep(2);
  child.kill("SIGKILL");
  await child.exited;
  await server.close();
  const { exitCode, stdout } = await place.kit("cleanup");
  expect([exitCode, stdout]).toEqual([6, expect.stringContaining("does not answer")]);
  expect(stdout).toContain("cleanup --forget");
  expect((await place.kit("cleanup", "--forget", "--base-url", server.url)).exitCode).toBe(0);
  const state = place.path("state");
  expect(existsSync(state) ? readdirSync(state) : []).toEqual([]);
});
