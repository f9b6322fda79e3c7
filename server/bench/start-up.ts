import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Measure, measure } from "./measure.ts";

/** From the start of the process to its first answer, from source and compiled. */
export async function coldStarts(times: number): Promise<Measure[]> {
  const directory = mkdtempSync(join(tmpdir(), "customers-start-"));
  try {
    const main = join(import.meta.dir, "../main.ts");
    const compiled = join(import.meta.dir, "../../dist/customers-server");
    await Bun.$`${process.execPath} run build customers-server`.cwd(join(import.meta.dir, "../..")).quiet();
    const source: number[] = [];
    const binary: number[] = [];
    for (let round = 0; round < times; round += 1) {
      source.push(await coldStart([process.execPath, main], join(directory, `source${round}`)));
      binary.push(await coldStart([compiled], join(directory, `binary${round}`)));
    }
    return [
      measure("cold start to first answer, from source", "", null, source, "ms"),
      measure("cold start to first answer, compiled", "", { atMost: 120 }, binary, "ms"),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function coldStart(command: readonly string[], directory: string): Promise<number> {
  mkdirSync(directory);
  const startedAt = performance.now();
  const child = Bun.spawn([...command, "serve", "--print-url", "--no-samples"], {
    env: {
      ...process.env,
      PORT: "0",
      DATABASE_URL: `sqlite:${directory}/customers.db`,
      NODE_ENV: "production",
    },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const { value } = await child.stdout.getReader().read();
  const { url } = JSON.parse(new TextDecoder().decode(value)) as { url: string };
  await fetch(`${url}/healthz`);
  const elapsedMs = performance.now() - startedAt;
  child.kill("SIGTERM");
  await child.exited;
  return elapsedMs;
}
