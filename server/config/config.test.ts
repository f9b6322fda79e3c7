import { describe, expect, test } from "bun:test";
import { readConfig, readSettings } from "./config.ts";
import {
  flagOf,
  hasSamples,
  SETTING_NAMES,
  type SettingName,
  type SettingTexts,
  variableOf,
} from "./settings.ts";

function configOf(texts: SettingTexts) {
  const result = readConfig(texts);
  if (!result.ok) throw new Error(result.faults.join("\n"));
  return result.value;
}

describe("a setting that is refused", () => {
  test.each<[SettingName, string]>([
    ["databaseUrl", "mysql://u:s3cret@h/db"],
    ["databaseUrl", '"postgres://u:s3cret@h/db"'],
    ["databaseUrl", " postgres://u:s3cret@h/db"],
    ["databaseUrl", "postgres:u:s3cret@h/db"],
    ["databaseUrl", "u:s3cret@h/db"],
    ["databaseUrl", "postgres://u:a@s3cret@h:no/db"],
    ["databaseUrl", "mysql://h/db?user=u&password=s3cret"],
    ["databaseUrl", "host=h password=s3cret"],
    ["publicUrl", "https://u:s3cret@h/"],
  ])("is named without its password: %s %s", (name, text) => {
    const result = readConfig({ [name]: text });
    const faults = result.ok ? [] : result.faults;
    expect(faults).toEqual([expect.stringContaining("***")]);
    expect(faults.join()).not.toContain("s3cret");
  });
});

describe("a setting", () => {
  test("that is absent has its default", () => {
    const { policyFile, ...config } = configOf({});
    expect(policyFile.path).toBeNull();
    expect(config).toEqual({
      host: "127.0.0.1",
      port: 8080,
      reusePort: false,
      adminPort: null,
      databaseUrl: "sqlite:./data/customers.db",
      databaseCa: null,
      databaseStandby: "any",
      samples: null,
      databaseMemoryMib: 256,
      lockWait: 5,
      auditRetentionDays: null,
      metricsAccess: "token",
      logLevel: "info",
      logFormat: "json",
      tlsCertFile: "",
      tlsKeyFile: "",
      tls: null,
      corsOrigins: [],
      corsHeaders: [],
      publicUrl: "",
      trustedProxies: null,
      idleTimeout: 75,
      stopGrace: 0.25,
      stopDrain: 10,
    });
  });

  test("has one name, spelled as variable and as flag", () => {
    expect([variableOf("tlsCertFile"), flagOf("tlsCertFile")]).toEqual(["TLS_CERT_FILE", "--tls-cert-file"]);
    expect(new Set(SETTING_NAMES.map(variableOf)).size).toBe(SETTING_NAMES.length);
  });

  test.each<[SettingName, string, unknown]>([
    ["port", "0", 0],
    ["port", "65535", 65_535],
    ["adminPort", "", null],
    ["adminPort", "0", 0],
    ["databaseUrl", "sqlite:///var/lib/c.db", "sqlite:///var/lib/c.db"],
    ["databaseUrl", "sqlite::memory:", "sqlite::memory:"],
    ["auditRetentionDays", "", null],
    ["auditRetentionDays", "1", 1],
    ["auditRetentionDays", "36500", 36_500],
    ["metricsAccess", "public", "public"],
    ["reusePort", "1", true],
    ["samples", "0", false],
    ["samples", "", null],
    ["logFormat", "text", "text"],
    ["idleTimeout", "255", 255],
    ["stopGrace", "0", 0],
    ["stopDrain", "0.5", 0.5],
    ["host", "::1", "::1"],
    ["host", "0.0.0.0", "0.0.0.0"],
    ["host", "localhost", "localhost"],
    ["host", "customers_1.internal", "customers_1.internal"],
    ["corsOrigins", "*", ["*"]],
    [
      "corsOrigins",
      " https://a.example , http://localhost:3000",
      ["https://a.example", "http://localhost:3000"],
    ],
    ["corsHeaders", " traceparent , tracestate", ["traceparent", "tracestate"]],
    ["corsHeaders", "*", ["*"]],
    ["publicUrl", "https://a.example/crm//", "https://a.example/crm"],
    // In a header it must be ASCII: a create was applied, and then failed at its Location.
    ["publicUrl", "https://例え.example/kundenü>", "https://xn--r8jz45g.example/kunden%C3%BC%3E"],
  ])("%s=%s is read", (name, text, value) => {
    expect<unknown>(configOf({ [name]: text })[name]).toEqual(value);
  });

  test.each<[SettingName, readonly string[]]>([
    [
      "host",
      [
        ...["", " ", "*", "-1", "0", "127.1", "127.0.0.256", "127.0.0.1 ", "ü", "[::1]", "localhost:80"],
        ...["http://localhost", "a..b", "a/b"],
      ],
    ],
    ["port", ["", "-1", "65536", "http", "8080.5", "0x50", " 80", "1e3"]],
    ["adminPort", ["-1", "65536", "http"]],
    [
      "databaseUrl",
      ["c.db", "sqlite:", "sqlite://", "postgres://h/d", "sqlite:dir/", "sqlite::x:", "sqlite:c.db?mode=ro"],
    ],
    ["reusePort", ["yes", "2", "true"]],
    ["samples", ["no"]],
    ["databaseMemoryMib", ["7", "0", "1e3", "64MiB", "65537"]],
    ["auditRetentionDays", ["0", "-1", "1.5", "90d", "36501"]],
    ["metricsAccess", ["Public", "yes"]],
    ["logLevel", ["INFO", "verbose"]],
    ["logFormat", ["pretty"]],
    ["idleTimeout", ["0", "256", "75s", "-1", "1e2", "75.5"]],
    ["stopGrace", ["-1", "3601", "5s"]],
    ["lockWait", ["0.0001", "61", ".5", "1e1"]],
    ["stopDrain", ["-1", "3601", ""]],
    [
      "corsOrigins",
      [
        ...["example.com", "https://a.example/", "https://a.example/app", "ftp://a.example", "null"],
        ...["http://*.x", ",", " ", "*,http://a", "http://a,", "http://a,,http://b"],
      ],
    ],
    ["corsHeaders", ["trace parent", "a:b", "*, ä", "*,traceparent", ",", " ", "traceparent,"]],
    [
      "publicUrl",
      [
        ...[
          "a.example",
          "ftp://a.example",
          "https://a.example?",
          "https://a.example/?x=1",
          "https://a.example#",
        ],
        "http://a/%zz",
      ],
    ],
    [
      "trustedProxies",
      [
        ...["proxy.example", "10.0.0.0/33", "0.0.0.0/0", "10.0.0.0/8 ::1", "10.0.0.0/8,::1/0"],
        ...["10.0.0.1/8", "10.0.0.0/08", "1.2.3.4,", ",", " "],
      ],
    ],
    ["policyFile", ["/nowhere/policy.toml", "/"]],
  ])("%s is refused by name where its text cannot be used", (name, texts) => {
    for (const text of texts) {
      const result = readConfig({ [name]: text });
      expect(result.ok ? [text] : result.faults).toEqual([
        expect.stringContaining(`${variableOf(name)} is "${text}": it `),
      ]);
    }
  });

  test.each<[SettingName, string, string]>([
    ["corsOrigins", "http://*.x", "list each origin"],
    ["corsOrigins", "*,http://a", 'or be "*" alone'],
    ["corsOrigins", ",", "an empty element"],
    ["corsHeaders", "traceparent,*", 'or be "*" alone'],
    ["trustedProxies", "1.2.3.4,", "an empty element"],
    [
      "trustedProxies",
      "10.0.0.1/8",
      "has bits behind its first 8; write 10.0.0.1 for this address alone, or 10.0.0.0/8",
    ],
    ["publicUrl", "http://a/%zz", "two hexadecimal digits behind each %"],
    ["lockWait", "0.0001", "at most three digits behind the point"],
  ])("says what to write instead: %s=%s", (name, text, words) => {
    const result = readConfig({ [name]: text });
    expect(result.ok ? "" : result.faults.join()).toContain(words);
  });

  test.each<[string, SettingTexts, readonly string[]]>([
    ["two ports", { port: "8080", adminPort: "8081" }, []],
    ["two free ports", { port: "0", adminPort: "0" }, []],
    [
      "one port",
      { port: "8081", adminPort: "8081" },
      ['ADMIN_PORT is "8081": it must be another port than PORT.'],
    ],
    ["the default port", { adminPort: "8080" }, ['ADMIN_PORT is "8080": it must be another port than PORT.']],
  ])("for the second listener is refused where it is that of the first: %s", (_, texts, faults) => {
    const result = readConfig(texts);
    expect(result.ok ? [] : result.faults).toEqual(faults);
  });

  test("for sample customers is on by itself only where nobody named a database, and in memory", () => {
    const on = (texts: SettingTexts) => hasSamples(configOf(texts));
    const own = "sqlite:/var/lib/customers/customers.db";
    expect([on({}), on({ databaseUrl: "sqlite::memory:" }), on({ databaseUrl: own })]).toEqual([
      true,
      true,
      false,
    ]);
    expect([on({ databaseUrl: own, samples: "1" }), on({ samples: "0" })]).toEqual([true, false]);
  });

  test("that is a database URL never shows its password", () => {
    const result = readConfig({ databaseUrl: "mysql://crm:s3cret@db.example/crm" });
    expect(result.ok ? "" : result.faults.join()).toContain("mysql://crm:***@db.example/crm");
  });

  test("that is a database URL with a user and no password is shown whole", () => {
    const result = readConfig({ databaseUrl: "mysql://crm@db.example/crm" });
    expect(result.ok ? "" : result.faults.join()).toContain("mysql://crm@db.example/crm");
  });

  test("that a command does not use is neither read nor refused", () => {
    const texts = { port: "many", logLevel: "loud", policyFile: "/nowhere", databaseUrl: "sqlite:c.db" };
    expect(readSettings(texts, ["databaseUrl"])).toEqual({ ok: true, value: { databaseUrl: "sqlite:c.db" } });
  });
});
