/** The command line, as a child process where that may matter, against the sound server of self/. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { readReport } from "../report/report-file.ts";
import { catalogue } from "../rules/catalogue.ts";
import { FAULTS } from "../self/faults.ts";
import { CREDENTIALS } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { type SoundServer, startSoundServer } from "../self/service/sound-server.ts";
import { Workplace } from "./testing-cli.ts";

let server: SoundServer;
let faulty: SoundServer;
const place = new Workplace({
  MAIN_KEY: CREDENTIALS.main,
  LIMITED_KEY: CREDENTIALS.limited,
  OTHER_KEY: CREDENTIALS.other,
  METRICS_KEY: CREDENTIALS.metrics,
});

beforeAll(async () => {
  server = await startSoundServer({ ...PLAIN, seeded: 2 });
  const fault = FAULTS.find(({ rule }) => rule === "IFM-12");
  if (fault === undefined) throw new Error("no fault is named for IFM-12");
  faulty = await startSoundServer(
    { ...PLAIN, ...fault.deployment },
    fault.plant(() => undefined),
  );
});
afterAll(async () => {
  await Promise.all([server.close(), faulty.close()]);
  place.remove();
});

const main = ["--header-env", "Authorization: Bearer $MAIN_KEY"];
const everybody = (at: SoundServer) => [
  "--base-url",
  at.url,
  ...main,
  "--limited-header-env",
  "Authorization: Bearer $LIMITED_KEY",
  "--limited-denied",
  "email",
  "--other-tenant-header",
  `Authorization: Bearer ${CREDENTIALS.other}`,
  "--metrics-url",
  at.metricsUrls[0] ?? "",
  "--metrics-header-env",
  "Authorization: Bearer $METRICS_KEY",
  "--exclusive",
  "--quick",
];

test.each([
  [["run"], "no base URL"],
  [["run", "--base-url", "nonsense"], "base-url"],
  [["run", "--base-url", "http://127.0.0.1:1", "--only", "XYZ-01"], "XYZ-01"],
  [["run", "--base-url", "http://127.0.0.1:1", "--quick", "--read-only"], "exclude"],
  [["run", "--base-url", "http://127.0.0.1:1", "--rounds", "x"], "--rounds"],
  [["run", "--base-url", "http://127.0.0.1:1", "--profile", "absent.toml"], "absent.toml"],
  [["run", "--base-url", "http://127.0.0.1:1", "--header-env", "A: $NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE"],
  [["run", "--bogus"], "bogus"],
  [["nonsense"], "nonsense"],
  [["report", "--from", "absent.json"], "absent.json"],
  [["report", "--from", "a.json", "--diff", "b.json", "--out", "x"], "--out"],
  [["replay", "IFM-01"], "report.json"],
] as const)("wrong usage ends with 2 and says what: %j", async (words, says) => {
  const { exitCode, stderr } = await place.kitHere(...words);
  expect(exitCode).toBe(2);
  expect(stderr).toContain(says);
});

test("nothing listens: 4, and nothing has passed", async () => {
  const { exitCode } = await place.kit("run", "--base-url", "http://127.0.0.1:1", "--out", "dead");
  expect(exitCode).toBe(4);
  expect(readReport(place.path("dead", "report.json")).counts.pass).toBe(0);
});

test("a sound deployment: 0, all reports written, no secret in any, nothing left", async () => {
  const { exitCode, stdout, stderr } = await place.kit(
    "run",
    ...everybody(server),
    "--quick",
    "--out",
    "sound",
  );
  expect(`${exitCode} ${stdout}`).toMatch(/^0 /);
  const files = readdirSync(place.path("sound"));
  expect(files.sort()).toEqual(["junit.xml", "report.html", "report.json", "report.md", "report.sarif"]);
  const written = [
    stdout,
    stderr,
    ...files.map((name) => readFileSync(place.path("sound", name), "utf8")),
  ].join("\n");
  for (const secret of Object.values(CREDENTIALS)) {
    expect(written).not.toContain(secret);
    expect(written).not.toContain(btoa(secret));
  }
  expect(readReport(place.path("sound", "report.json"))).toMatchObject({
    verdict: "conforms",
    exitCode: 0,
    counts: { pass: catalogue.length },
  });
  expect(server.customers().length).toBe(2);
  expect(readdirSync(place.path("state"))).toEqual([]);
});

test("a faulty one: 1, and the failure names the rule, the odd header and how to run it again", async () => {
  const { exitCode, stdout } = await place.kit(
    "run",
    "--base-url",
    faulty.url,
    ...main,
    "--only",
    "IFM-12,ETG-01",
    "--out",
    "faulty",
  );
  expect(exitCode).toBe(1);
  for (const part of ["IFM-12  MUST", "If-Match: *", "CHANGED, read back", "curl -i -X PUT", "--only IFM-12"])
    expect(stdout).toContain(part);
});

test("replay shows the exchanges; the reports are drawn again; two runs are compared", async () => {
  for (const [at, out] of [
    [faulty, "violation"],
    [server, "none"],
  ] as const)
    await place.kitHere("run", "--base-url", at.url, ...main, "--only", "IFM-12,ETG-01", "--out", out);
  const replay = await place.kitHere("replay", "IFM-12", "--from", "violation/report.json");
  expect(replay.exitCode).toBe(1);
  expect(replay.stdout).toContain("> If-Match: *");
  expect(replay.stdout).not.toContain(CREDENTIALS.main);
  const again = await place.kitHere("report", "--from", "violation/report.json", "--out", "again");
  expect(again.stdout).toContain("IFM-12");
  expect(readFileSync(place.path("again", "junit.xml"), "utf8")).toBe(
    readFileSync(place.path("violation", "junit.xml"), "utf8"),
  );
  const compared = await place.kitHere(
    "report",
    "--from",
    "violation/report.json",
    "--diff",
    "none/report.json",
  );
  expect(compared.stdout).toContain("IFM-12");
});

test("a known violation does not fail the run until its day has passed; one that passes is an error", async () => {
  const expectation = (rule: string, until: string) =>
    `[[violation]]\nrule = "${rule}"\nreason = "r"\nowner = "o"\nuntil = ${until}\n`;
  writeFileSync(place.path("known.toml"), expectation("IFM-12", "2999-12-31"));
  writeFileSync(place.path("expired.toml"), expectation("IFM-12", "2001-01-01"));
  writeFileSync(place.path("fixed.toml"), expectation("ETG-01", "2999-12-31"));
  writeFileSync(place.path("wrong.toml"), expectation("IFM-99", "2999-12-31"));
  const codes = [];
  for (const file of ["known", "expired", "fixed", "wrong"]) {
    const only = file === "fixed" ? "ETG-01" : "IFM-12,ETG-01";
    codes.push(
      (
        await place.kitHere(
          "run",
          "--base-url",
          faulty.url,
          ...main,
          "--only",
          only,
          "--expected",
          `${file}.toml`,
        )
      ).exitCode,
    );
  }
  expect(codes).toEqual([0, 1, 1, 2]);
});

test("without a caller that rules need: 3, or 0 where that is allowed", async () => {
  const words = ["run", "--base-url", server.url, ...main, "--only", "ETG-01,AUT-08"];
  expect((await place.kitHere(...words)).exitCode).toBe(3);
  expect((await place.kitHere(...words, "--allow-incomplete")).exitCode).toBe(0);
  expect(
    (await place.kitHere("run", "--base-url", server.url, ...main, "--only", "AUT-08", "--allow-incomplete"))
      .exitCode,
  ).toBe(3);
});

test("given customers get back their name and email, and no other is made", async () => {
  const before = structuredClone(server.customers().map(({ id, name, email }) => ({ id, name, email })));
  const ids = server.seeded.flatMap((id) => ["--customer-id", id]);
  const { exitCode, stdout } = await place.kitHere(
    "run",
    ...everybody(server),
    ...ids,
    ...["--only", "ETG-08,IFM-01,IFM-40,FLD-15,ATM-01", "--allow-incomplete"],
    "--out",
    "given",
  );
  expect(`${exitCode} ${stdout}`).toMatch(/^0 /);
  expect(server.customers().map(({ id, name, email }) => ({ id, name, email }))).toEqual(before);
  const report = readReport(place.path("given", "report.json"));
  expect(report.fixtures).toMatchObject({ made: 0, given: 2, left: [] });
  expect(report.counts["could-not-run"]).toBeGreaterThan(0);
});

test("read-only sends nothing but GET", async () => {
  await place.kitHere(
    "run",
    "--base-url",
    server.url,
    ...main,
    "--read-only",
    "--customer-id",
    server.seeded[0] ?? "",
    "--out",
    "reading",
  );
  const report = readReport(place.path("reading", "report.json"));
  expect([...new Set(report.ledger.map(({ method }) => method))]).toEqual(["GET"]);
  expect(report.counts.pass).toBeGreaterThan(15);
});

test("doctor and rules", async () => {
  const doctor = await place.kitHere("doctor", "--base-url", server.url, ...main);
  expect(doctor.exitCode).toBe(0);
  expect(doctor.stdout).toContain("byte for byte");
  const rules = await place.kitHere("rules");
  for (const { id } of catalogue) expect(rules.stdout).toContain(id);
});
