import { describe, expect, test } from "bun:test";
import { readConfig, SETTINGS } from "./config.ts";

function configOf(environment: Record<string, string>) {
  const result = readConfig({}, environment);
  if (!result.ok) throw new Error(result.faults.join("\n"));
  return result.config;
}

describe("a setting", () => {
  test("that is absent or empty has its default", () => {
    const empty = Object.fromEntries(SETTINGS.map(({ name }) => [name, ""]));
    const { policy: _, ...config } = configOf(empty);
    expect(config).toEqual({
      host: "127.0.0.1",
      port: 8080,
      databaseUrl: "sqlite:./data/customers.db",
      databasePath: "./data/customers.db",
      policyFile: null,
      metricsArePublic: false,
      logLevel: "info",
      logFormat: "json",
      tls: null,
      corsOrigins: [],
      publicUrl: "",
      sharesPort: false,
    });
    expect(configOf({})).toEqual(configOf(empty));
  });

  test("given by a flag wins over the environment, an empty flag included", () => {
    const result = readConfig({ PORT: "1", PUBLIC_URL: "" }, { PORT: "2", PUBLIC_URL: "https://x.example" });
    expect(result).toMatchObject({ ok: true, config: { port: 1, publicUrl: "" } });
    expect(readConfig({ PORT: "" }, { PORT: "2" }).ok).toBe(false);
  });

  test.each([
    ["PORT", "0", { port: 0 }],
    ["PORT", "65535", { port: 65_535 }],
    ["DATABASE_URL", "sqlite:/var/lib/c.db", { databasePath: "/var/lib/c.db" }],
    ["DATABASE_URL", "sqlite:///var/lib/c.db", { databasePath: "/var/lib/c.db" }],
    ["DATABASE_URL", "sqlite:c.db", { databasePath: "c.db" }],
    ["DATABASE_URL", "sqlite::memory:", { databasePath: ":memory:" }],
    ["METRICS_ACCESS", "public", { metricsArePublic: true }],
    ["REUSE_PORT", "1", { sharesPort: true }],
    ["LOG_FORMAT", "text", { logFormat: "text" }],
    ["CORS_ORIGINS", "*", { corsOrigins: ["*"] }],
    [
      "CORS_ORIGINS",
      " https://a.example , http://localhost:3000,",
      { corsOrigins: ["https://a.example", "http://localhost:3000"] },
    ],
    ["PUBLIC_URL", "https://a.example/crm//", { publicUrl: "https://a.example/crm" }],
  ])("%s=%s is read", (name, value, expected) => {
    expect(configOf({ [name]: value })).toMatchObject(expected);
  });

  test.each([
    ["PORT", ["-1", "65536", "http", "8080.5", "0x50", " 80", "1e3"]],
    [
      "DATABASE_URL",
      ["c.db", "sqlite:", "sqlite://", "postgres://h/d", "sqlite:dir/", "sqlite::x:", "sqlite:c.db?mode=ro"],
    ],
    ["REUSE_PORT", ["yes", "2"]],
    ["METRICS_ACCESS", ["Public", "yes"]],
    ["LOG_LEVEL", ["INFO", "verbose"]],
    ["LOG_FORMAT", ["pretty"]],
    [
      "CORS_ORIGINS",
      ["example.com", "https://a.example/", "https://a.example/app", "ftp://a.example", "null"],
    ],
    [
      "PUBLIC_URL",
      [
        "a.example",
        "ftp://a.example",
        "https://a.example?",
        "https://a.example/?x=1",
        "https://a.example#",
        "https://u:p@a.example",
      ],
    ],
    ["POLICY_FILE", ["/nowhere/policy.toml", "/"]],
  ])("%s is refused by name where its value can't be used", (name, values) => {
    for (const value of values) {
      const result = readConfig({}, { [name]: value });
      expect(result.ok ? [value] : result.faults).toEqual([
        expect.stringContaining(`${name} is "${value}": `),
      ]);
    }
  });

  test("that a command does not use is neither read nor refused", () => {
    const result = readConfig(
      { PORT: "many" },
      { LOG_LEVEL: "loud", POLICY_FILE: "/nowhere", DATABASE_URL: "sqlite:c.db" },
      ["DATABASE_URL"],
    );
    expect(result).toMatchObject({ ok: true, config: { databasePath: "c.db", port: 8080 } });
  });
});
