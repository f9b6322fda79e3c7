import { describe, expect, test } from "bun:test";
import { mistypedVariables } from "./mistyped-variables.ts";
import { SETTING_NAMES, variableOf } from "./settings.ts";

describe("variables of the environment", () => {
  test.each([
    ["POLICY_FIEL", "POLICY_FILE"],
    ["DATABASE_URI", "DATABASE_URL"],
    ["METRIC_ACCESS", "METRICS_ACCESS"],
    ["policy_file", "POLICY_FILE"],
  ])("%s most likely was to be %s", (name, meant) => {
    expect(mistypedVariables([name])).toEqual([
      `${name} is no setting, and is ignored; did you mean ${meant}?`,
    ]);
  });

  test("no setting, and nothing that every environment has, is taken for a mistake", () => {
    const usual = ["PATH", "HOME", "HOSTNAME", "POST", "HOSTS", "SHELL", "LANG", "LOGNAME", "PWD", "USER"];
    const systemd = ["INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "LISTEN_FDS", "MAINPID"];
    const cluster = [
      "KUBERNETES_PORT",
      "KUBERNETES_SERVICE_HOST",
      "POSTGRES_PORT",
      "NODE_ENV",
      "BUN_OPTIONS",
    ];
    const all = [...SETTING_NAMES.map(variableOf), ...usual, ...systemd, ...cluster];
    expect(mistypedVariables(all)).toEqual([]);
  });
});
