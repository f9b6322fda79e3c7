/** How long the client waits where a server asks for it. */
import { expect, test } from "bun:test";
import { runClient, SOURCE_COMMAND } from "./support/client.ts";
import { response, startRawServer } from "./support/raw-server.ts";

type Form = "usual" | "rfc850" | "asctime";

/** A date in one of the three forms of RFC 9110 §5.6.7. */
function written(date: Date, form: Form): string {
  const usual = date.toUTCString();
  const [, day = "", month = "", year = "", time = ""] = usual.split(" ");
  const weekday = date.toLocaleDateString("en-US", { weekday: "long", timeZone: "UTC" });
  if (form === "rfc850") return `${weekday}, ${day}-${month}-${year.slice(2)} ${time} GMT`;
  if (form === "asctime") return `${weekday.slice(0, 3)} ${month} ${day.replace(/^0/, " ")} ${time} ${year}`;
  return usual;
}

// West of Greenwich a local time is hours away, beyond every time-out; east of it, it is past.
test.each<[zone: string, retryAfter: Form, date: Form]>([
  ["America/New_York", "usual", "usual"],
  ["America/New_York", "rfc850", "usual"],
  ["America/New_York", "asctime", "usual"],
  ["Asia/Tokyo", "asctime", "usual"],
  ["Asia/Tokyo", "usual", "asctime"],
])("in %s, Retry-After in the form %s and Date in the form %s are UTC", async (zone, retryAfter, date) => {
  const times: number[] = [];
  const server = await startRawServer(() => {
    times.push(performance.now());
    const now = new Date();
    const later = new Date(now.getTime() + 1000);
    const busy = response(429, [`Date: ${written(now, date)}`, `Retry-After: ${written(later, retryAfter)}`]);
    const customer = response(200, ["Content-Type: application/json", 'ETag: "1"'], '{"id":"1"}');
    return { bytes: times.length === 1 ? busy : customer };
  });
  try {
    const command = SOURCE_COMMAND;
    const env = { TZ: zone };
    const { exitCode } = await runClient(["get", "1", "--url", server.url, "--timeout", "20"], {
      command,
      env,
    });
    const [first = 0, second = 0] = times;
    expect({ exitCode, waited: second - first >= 1000 }).toEqual({ exitCode: 0, waited: true });
  } finally {
    server.stop();
  }
});
