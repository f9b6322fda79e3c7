import { expect, test } from "bun:test";
import { Registry } from "prom-client";
import { seriesOf } from "../../tests/support/service/metric-series.ts";
import { RequestMetrics } from "./request-metrics.ts";

const answered = (method: string, status: number, durationMs: number) => ({
  timeMs: 0,
  method,
  route: "/customers/{id}",
  status,
  durationMs,
  requestId: "",
  caller: null,
  code: undefined,
  isAllowedWithoutIfMatch: false,
  isReplayed: false,
});

test("a scrape shows every request until then, however many there were and however they alternate", async () => {
  const registry = new Registry();
  const metrics = new RequestMetrics(registry);
  let recorded = 0;
  for (const more of [0, 1, 255, 1, 600]) {
    for (let request = 0; request < more; request += 1) {
      metrics.record(answered("GET", 200, 0.25));
      metrics.record(answered(request % 2 === 0 ? "PURGE" : "REPORT", 405, 4));
    }
    recorded += more;
    const series = seriesOf(await registry.metrics());
    const value = (name: string, labels: string) =>
      series.get(`${name}{${labels}}`) ?? series.get(`${name}{le="0.0005",${labels}}`) ?? 0;
    const reads = 'method="GET",route="/customers/{id}",status="200"';
    const others = 'method="other",route="/customers/{id}",status="405"';
    expect({
      reads: value("http_requests_total", reads),
      fast: value("http_request_duration_seconds_bucket", reads),
      seconds: Math.round(value("http_request_duration_seconds_sum", reads) * 1e6) / 1e6,
      others: value("http_requests_total", others),
      fastOthers: value("http_request_duration_seconds_bucket", others),
    }).toEqual({
      reads: recorded,
      fast: recorded,
      seconds: (recorded * 250) / 1e6,
      others: recorded,
      fastOthers: 0,
    });
  }
});
