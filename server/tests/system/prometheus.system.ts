import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BUILT_IN_POLICY } from "../../config/policy-file.ts";
import { TestService } from "../support/service/test-service.ts";

const RULES = new URL("../../telemetry/prometheus/customers.rules.yml", import.meta.url).pathname;
const RULE_TESTS = new URL("../../telemetry/prometheus/customers.rules.test.yml", import.meta.url).pathname;

/**
 * Runs promtool (Debian package prometheus). Its verdict is
 * its exit code; what it says is for the failure's reader.
 */
async function promtool(
  args: readonly string[],
  stdin: string | null = null,
): Promise<{ code: number; said: string }> {
  const child = Bun.spawn(["promtool", ...args], {
    stdin: stdin === null ? "ignore" : Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, said: out + err };
}

describe.each([
  { title: "with caller labels", metricsArePublic: false },
  { title: "public", metricsArePublic: true },
])("metrics $title", ({ metricsArePublic }) => {
  let service: TestService;
  beforeAll(async () => {
    const policy = `${BUILT_IN_POLICY}[limits.client]\nwrites = { per_second = 1000, burst = 1000 }\n`;
    service = await TestService.start({ metricsArePublic, policy });
  });
  afterAll(() => service.stop());
  const scrape = async (): Promise<string> => {
    const caller = metricsArePublic ? null : { role: "monitor", client: "prometheus" };
    const reply = await service.send("GET", "/metrics", { caller });
    expect([reply.status, reply.headers.get("content-type")]).toEqual([
      200,
      "text/plain; version=0.0.4; charset=utf-8",
    ]);
    return reply.text;
  };

  test("promtool is content with the first scrape", async () => {
    expect(await promtool(["check", "metrics"], await scrape())).toEqual({ code: 0, said: "" });
  });

  test("promtool is content with a scrape after every kind of answer, and the rules' metrics and labels are there", async () => {
    const { path, etag } = await service.customer();
    const holder = { client: "night", role: "viewer", tenant: "acme" };
    const hourMs = 3_600_000;
    // Near its end: made a hundred hours ago, and an hour left.
    await service.storage.tokens.create(holder, Date.now() - 100 * hourMs, Date.now() + hourMs);
    const body = { name: "Ada", email: "ada@example.com" };
    for (const headers of [{}, { "if-match": '"AAAAAAAAAAAAAAAA"' }, { "if-match": etag }]) {
      for (const method of ["PUT", "PATCH", "DELETE", "GET", "HEAD", "POST", "TRACE"]) {
        const isBodiless = method === "GET" || method === "HEAD" || method === "TRACE";
        await service.send(method, path, {
          headers: { ...headers, "user-agent": "shop/1.2.3" },
          ...(isBodiless ? {} : { body }),
        });
      }
    }
    const exposition = await scrape();
    expect(await promtool(["check", "metrics"], exposition)).toEqual({ code: 0, said: "" });

    const rules = (await Bun.file(RULES).text()).replace(/^\s*#.*$/gm, "");
    const named = new Set(rules.match(/(?<![:a-z_])(?:http_[a-z_]+_total|customers_[a-z_]+)(?=[{[\s)])/g));
    expect(named.size).toBe(28);
    // Public metrics name no client.
    if (metricsArePublic) named.delete("customers_rollout_client_state");
    for (const name of named) {
      const family = `# TYPE ${name.replace(/_bucket$/, "")} `;
      expect([name, exposition.includes(family)]).toEqual([name, true]);
    }
    const labels = new Set(
      [...rules.matchAll(/\bby \(([^)]+)\)/g)].flatMap(([, list = ""]) => list.split(", ")),
    );
    expect(labels).toEqual(
      new Set([
        "job",
        "instance",
        "route",
        "client",
        "client_version",
        "tenant",
        "limit",
        "token",
        "reason",
        "state",
        "le",
      ]),
    );
    if (metricsArePublic) return;
    // Prometheus itself adds job and instance.
    for (const label of labels.difference(new Set(["job", "instance"]))) {
      expect([label, exposition.includes(`${label}="`)]).toEqual([label, true]);
    }
  });
});

test("promtool is content with the recording and alerting rules", async () => {
  const { code, said } = await promtool(["check", "rules", RULES]);
  expect({ code, said: said.includes("SUCCESS: 32 rules found") }).toEqual({ code: 0, said: true });
});

test("promtool is content with the prometheus.yml of docs/metrics.md, beside the rules and a token", async () => {
  const guide = await Bun.file(new URL("../../docs/metrics.md", import.meta.url)).text();
  const config = /```yaml\n(# prometheus\.yml\n[\s\S]*?)```/.exec(guide)?.[1] ?? "";
  expect(config).toContain("scrape_configs");
  const directory = mkdtempSync(join(tmpdir(), "customers-"));
  try {
    copyFileSync(RULES, join(directory, "customers.rules.yml"));
    writeFileSync(join(directory, "prometheus.token"), `cst_${"x".repeat(40)}\n`);
    writeFileSync(join(directory, "prometheus.yml"), config);
    const { code, said } = await promtool(["check", "config", join(directory, "prometheus.yml")]);
    expect({ code, said: code === 0 ? "" : said }).toEqual({ code: 0, said: "" });
    expect(said).toContain("32 rules found");
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("each alert fires and ends when it should", async () => {
  const { code, said } = await promtool(["test", "rules", RULE_TESTS]);
  expect({ code, said: /^\s*SUCCESS\s*$/m.test(said) ? "SUCCESS" : said }).toEqual({
    code: 0,
    said: "SUCCESS",
  });
  const alerts = [...(await Bun.file(RULES).text()).matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const tests = await Bun.file(RULE_TESTS).text();
  expect(alerts.length).toBeGreaterThan(0);
  for (const alert of alerts) {
    const cases = tests.split(`- alertname: ${alert}\n`).slice(1);
    // One case at least in which it fires, and one in which it is silent.
    const firing = cases.filter((text) => /^\s*eval_time: \w+\n\s*exp_alerts:\n/.test(text)).length;
    expect([alert, firing > 0, cases.length > firing]).toEqual([alert, true, true]);
  }
});

test("every rule keeps job and reads only targets that say they are this service", async () => {
  const rules = (await Bun.file(RULES).text()).replace(/^\s*#.*$/gm, "");
  for (const [list = ""] of rules.matchAll(/\bby \([^)]+\)/g)) expect(list).toStartWith("by (job, ");
  const reads = [...rules.matchAll(/(?:rate|increase)\(http_[a-z_]+(?:\{[^}]*\})?\[\w+\]\)(.{0,60})/g)];
  expect(reads.length).toBeGreaterThan(10);
  for (const [, after = ""] of reads) {
    expect(after).toMatch(/^ and on \(job, instance\) (?:customers_build_info|last_over_time)/);
  }
});
