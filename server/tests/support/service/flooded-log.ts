import { openLog } from "../../../telemetry/log/log.ts";

/**
 * Logs so many requests that nobody reads, and says so; then
 * waits for its stdin to end: `bun flooded-log.ts COUNT`.
 */
const log = openLog("info", "json");
for (let n = 0; n < Number(process.argv[2]); n += 1) {
  const answered = {
    timeMs: 0,
    method: "GET",
    route: "/customers/{id}",
    status: 200,
    durationMs: n,
    requestId: crypto.randomUUID(),
    caller: { client: "flood", tenant: "default" },
    code: undefined,
    isAllowedWithoutIfMatch: false,
    isReplayed: false,
  };
  log.access(answered, "127.0.0.1");
}
console.log("logged");
for await (const _ of process.stdin);
await log.close();
