import type { Reply, TestService } from "./test-service.ts";

export const WRITE_COUNTERS = [
  "http_precondition_required_total",
  "http_precondition_failed_total",
  "http_write_attempts_total",
  "http_precondition_missing_allowed_total",
] as const;
type WriteCounter = (typeof WRITE_COUNTERS)[number];

/** Every series of an exposition with its value, written as Prometheus writes it. */
export function seriesOf(exposition: string): Map<string, number> {
  const lines = exposition.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line): [string, number] => {
      const space = line.lastIndexOf(" ");
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

export async function scrape(service: TestService): Promise<Map<string, number>> {
  const { text } = await service.send("GET", "/metrics", {
    caller: { role: "monitor", client: "prometheus" },
  });
  return seriesOf(text);
}

/** What one request moves: write counters and requests, by series. The scrapes' own requests are left out. */
export async function movedIn(
  service: TestService,
  act: () => Promise<Reply>,
): Promise<{ reply: Reply; moved: Record<string, number> }> {
  const before = await scrape(service);
  const reply = await act();
  const after = await scrape(service);
  const moved: Record<string, number> = {};
  for (const [series, value] of after) {
    const delta = value - (before.get(series) ?? 0);
    const isCounted = ["http_requests_total", ...WRITE_COUNTERS].some((name) =>
      series.startsWith(`${name}{`),
    );
    if (isCounted && delta !== 0 && !series.includes('route="/metrics"')) moved[series] = delta;
  }
  return { reply, moved };
}

/** @param caller the labels of the caller that a test names; the others are those of its default one */
export function writeSeries(
  name: WriteCounter,
  method: string,
  { client = "shop", version = "", tenant = "acme" } = {},
): string {
  return `${name}{method="${method}",route="/customers/{id}",client="${client}",client_version="${version}",tenant="${tenant}"}`;
}

export function requestSeries(method: string, status: number, route = "/customers/{id}"): string {
  return `http_requests_total{method="${method}",route="${route}",status="${status}"}`;
}
