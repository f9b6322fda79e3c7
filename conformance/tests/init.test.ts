/** `init`: what was given, and what was found, stands in the profile. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parse } from "smol-toml";
import { CREDENTIALS } from "../self/service/service.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { type SoundServer, startSoundServer } from "../self/service/sound-server.ts";
import { Workplace } from "./testing-cli.ts";

let server: SoundServer;
const place = new Workplace({ MAIN_KEY: CREDENTIALS.main, LIMITED_KEY: CREDENTIALS.limited });

beforeAll(async () => {
  server = await startSoundServer(PLAIN);
});
afterAll(async () => {
  await server.close();
  place.remove();
});

const main = ["--header-env", "Authorization: Bearer $MAIN_KEY"];
const written = (name: string) => parse(readFileSync(place.path(name), "utf8"));

test("the profile holds everything that was given, by file and by flag, and what was found", async () => {
  const given = [
    'put = { body = \'{"Name":"{{name}}","Email":"{{email}}"}\' }',
    "pace = { rate = 400, budget = 900 }",
    "tls = { insecure = true }",
    "metrics = { none = true }",
    "[customers]",
    'path = "/customers"',
    'body = \'{"Name":"{{name}}","Email":"{{email}}"}\'',
    "[limited]",
    'denied = "email"',
  ];
  writeFileSync(place.path("given.toml"), given.join("\n"));
  const words = [
    ...["init", server.url, "--profile", "given.toml", "--write", "all.toml", "--timeout", "3000", ...main],
    ...["--limited-header-env", "Authorization: Bearer $LIMITED_KEY"],
  ];
  const { exitCode, stdout } = await place.kit(...words);
  expect(`${exitCode} ${stdout}`).toMatch(/^0 /);
  const template = '{"Name":"{{name}}","Email":"{{email}}"}';
  expect(written("all.toml")).toMatchObject({
    "base-url": server.url,
    "timeout-ms": 3000,
    headers: { Authorization: "Bearer $MAIN_KEY" },
    limited: { denied: "email", headers: { Authorization: "Bearer $LIMITED_KEY" } },
    put: { body: template },
    pace: { rate: 400, budget: 900 },
    tls: { insecure: true },
    metrics: { none: true },
    customers: { path: "/customers", body: template },
    json: { id: "Id", name: "Name", email: "Email", status: "Status" },
    patch: { "media-type": "application/merge-patch+json" },
  });
  expect(stdout).toContain("Wrote all.toml. Next: ");
  expect(stdout).not.toContain("onforms");
  expect(readFileSync(place.path("all.toml"), "utf8")).toMatch(/# PATCH: .*exchange \d+/);
  expect((await place.kit(...words)).exitCode).toBe(2);
  const again = await place.kitHere("run", "--profile", "all.toml", "--only", "ETG-01");
  expect(again.exitCode).toBe(0);
});

test.each([
  ["refused credentials", () => [server.url, "--header", "Authorization: Bearer wrong"], 4],
  ["nothing that listens", () => ["http://127.0.0.1:1", ...main], 4],
] as const)("%s: no profile is written, and the exit code says so", async (_, words, code) => {
  const { exitCode, stderr } = await place.kitHere("init", ...words(), "--write", "none.toml");
  expect(exitCode).toBe(code);
  expect(stderr).toContain("none.toml was not written");
  expect(existsSync(place.path("none.toml"))).toBe(false);
});

test("a secret that a flag spelled out is written as a variable", async () => {
  const words = ["init", server.url, "--header", `Authorization: Bearer ${CREDENTIALS.main}`];
  expect((await place.kitHere(...words, "--write", "spelled.toml")).exitCode).toBe(0);
  expect(written("spelled.toml")).toMatchObject({ headers: { Authorization: "$AUTHORIZATION" } });
});

test("a profile does not say that DELETE is absent where a 404 may have been about the customer", async () => {
  const own = await startSoundServer({ ...PLAIN, seeded: 1 }, () => ({
    order: () => ["exists", "if-match", "current", "body"],
  }));
  try {
    const words = [
      "init",
      own.url,
      "--customer-id",
      own.seeded[0] ?? "",
      ...main,
      "--write",
      "given-id.toml",
    ];
    expect((await place.kitHere(...words)).exitCode).toBe(0);
    expect(written("given-id.toml")).not.toHaveProperty("delete");
  } finally {
    await own.close();
  }
});
