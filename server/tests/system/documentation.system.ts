import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { temporaryDirectory } from "../support/service/server-process.ts";

const guide = await Bun.file(new URL("../../docs/proxies.md", import.meta.url)).text();
const directory = temporaryDirectory();
afterAll(() => directory.remove());

/** The one block of this language in docs/proxies.md. */
function block(language: string): string {
  return new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(guide)?.[1] ?? "";
}

function check(...command: string[]): { code: number; said: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command);
  return { code: exitCode, said: exitCode === 0 ? "" : `${stdout}${stderr}` };
}

test("nginx accepts the configuration of docs/proxies.md", () => {
  const file = `${directory.path}/nginx.conf`;
  writeFileSync(
    file,
    `pid ${directory.path}/pid; error_log stderr; events {}\nhttp {\n${block("nginx")}\n}\n`,
  );
  expect(check("nginx", "-t", "-c", file, "-e", "stderr")).toEqual({ code: 0, said: "" });
});

test("HAProxy accepts the configuration of docs/proxies.md", () => {
  const file = `${directory.path}/haproxy.cfg`;
  writeFileSync(file, block("haproxy"));
  expect(check("haproxy", "-c", "-f", file)).toEqual({ code: 0, said: "" });
});
