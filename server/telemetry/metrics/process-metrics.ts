import type { Registry } from "prom-client";
import Gauge from "prom-client/lib/gauge.js";
import Histogram from "prom-client/lib/histogram.js";
import { DESCRIPTORS_MAX, openDescriptors } from "../file-descriptors.ts";
import { scrapedCounter, scrapedGauge } from "./scraped-metric.ts";

const SAMPLE_MS = 100;
const LAG_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * The process behind the service, under the names that Prometheus clients share. The
 * library's own default metrics are not used: under Bun half of them are empty or wrong.
 */
export function registerProcessMetrics(
  registry: Registry,
  version: string,
  certificateExpiry: () => number,
): void {
  const registers = [registry];
  new Gauge({
    name: "customers_build_info",
    help: "Always 1; the labels are the versions of the service and of Bun.",
    labelNames: ["version", "bun"],
    registers,
  }).set({ version, bun: Bun.version }, 1);
  new Gauge({
    name: "process_start_time_seconds",
    help: "When the process started, in seconds since 1970.",
    registers,
  }).set(Math.round(performance.timeOrigin) / 1000);
  const gauge = (name: string, help: string, read: () => number): void =>
    scrapedGauge(registry, { name, help }, read);
  gauge(
    "customers_tls_certificate_expiry_seconds",
    "When the first certificate of the served chain ends, in seconds since 1970; NaN without TLS.",
    certificateExpiry,
  );
  gauge("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
  gauge("process_open_fds", "Open file descriptors.", openDescriptors);
  gauge("process_max_fds", "The limit of open file descriptors.", () => DESCRIPTORS_MAX);
  const cpu = { name: "process_cpu_seconds_total", help: "User and system time of the process." };
  scrapedCounter(registry, cpu, () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  observeLag(
    new Histogram({
      name: "customers_event_loop_lag_seconds",
      help: `How late a timer of ${SAMPLE_MS} ms fired; the service handled no request meanwhile.`,
      buckets: LAG_SECONDS,
      registers,
    }),
  );
}

function observeLag(lag: Histogram): void {
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    lag.observe(Math.max(0, now - last - SAMPLE_MS) / 1000);
    last = now;
  }, SAMPLE_MS).unref();
}
