#!/usr/bin/env node
// Runs the executable of this platform, which npm installed as an optional dependency of this package.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";

const require = createRequire(import.meta.url);
const { name, bin, optionalDependencies } = require("../package.json");
const [program] = Object.keys(bin);

function fail(message) {
  process.stderr.write(`${program}: ${message}\n`);
  process.exit(1);
}

const isMusl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
const platform = `${process.platform}-${process.arch}${isMusl ? "-musl" : ""}`;
const packageName = `${name}-${platform}`;
if (!Object.hasOwn(optionalDependencies, packageName)) {
  const supported = Object.keys(optionalDependencies).map((dependency) => dependency.slice(name.length + 1));
  fail(`there is no build for ${platform}. Supported: ${supported.join(", ")}.`);
}

let path;
try {
  path = require.resolve(`${packageName}/bin/${program}${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  fail(`the package ${packageName} is missing. Install ${name} again, without --omit=optional.`);
}

const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`${path} could not be started: ${error.message}.`));
// A terminal sends SIGINT to the child as well; sent once more, it would count as the second Ctrl-C.
const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
process.on("SIGINT", () => hasTerminal || child.kill("SIGINT"));
for (const signal of ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"])
  process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  // End as the child did, so that a shell sees the signal.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  setTimeout(() => process.exit(128 + constants.signals[signal]), 1000);
});
