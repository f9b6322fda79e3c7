/** This project's own service as a process, with a token for each role. */
import { join } from "node:path";
import { RUNTIME, temporaryDirectory } from "./client.ts";

const MAIN = new URL("../../../server/main.ts", import.meta.url).pathname;
/** The whole test run compiles the service once: it then starts in less than half of the processor time. */
const { TEST_SERVER } = process.env;
const SERVICE = TEST_SERVER === undefined ? [process.execPath, MAIN] : [TEST_SERVER];

export const POLICY = `
[roles.editor]
read = ["id", "name", "email", "status"]
operations = ["get", "list", "create", "replace", "patch", "delete"]
[roles.viewer]
read = ["id", "name", "email", "status"]
operations = ["get", "list"]
[roles.support]
read = ["id", "name", "status"]
operations = ["get", "list"]
[roles.clerk]
read = ["id", "name"]
operations = ["get", "replace", "patch"]
`;

export type Service = {
  url: string;
  /** By role. */
  tokens: Readonly<Record<string, string>>;
  stop(): Promise<void>;
};

/** @param env more settings of the service @param morePolicy what its policy holds besides */
export async function startService(
  roles: readonly string[],
  env: Readonly<Record<string, string>> = {},
  morePolicy = "",
): Promise<Service> {
  const directory = temporaryDirectory();
  const environment = {
    ...RUNTIME,
    PATH: process.env["PATH"] ?? "",
    DATABASE_URL: `sqlite:${join(directory.path, "customers.db")}`,
    PORT: "0",
    STOP_GRACE: "0",
    LOG_LEVEL: "silent",
    POLICY_FILE: join(directory.path, "policy.toml"),
    ...env,
  };
  await Bun.write(environment.POLICY_FILE, `${POLICY}${morePolicy}`);
  const run = (...args: string[]) =>
    Bun.spawn([...SERVICE, ...args], {
      cwd: directory.path,
      env: environment,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
  const service = run("serve", "--print-url", "--no-samples");
  let url = "";
  for await (const chunk of service.stdout) {
    url = JSON.parse(Buffer.from(chunk).toString()).url;
    break;
  }
  const tokens: Record<string, string> = {};
  for (const role of roles) {
    const child = run("token", "create", "--tenant", "acme", "--role", role, "--client", role);
    tokens[role] = (await child.stdout.text()).trim();
  }
  return {
    url,
    tokens,
    async stop() {
      service.kill();
      await service.exited;
      directory[Symbol.dispose]();
    },
  };
}
