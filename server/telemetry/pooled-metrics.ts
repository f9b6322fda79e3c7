import { AggregatorRegistry, type Registry } from "prom-client";
import { ClientVersions } from "./client-versions.ts";

/** A process's metrics as they cross to another process. */
export type MetricsSnapshot = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** So many versions of a client does a process tell of. Far more than are named, and still few enough to send. */
export const VERSIONS_TOLD_MAX = 200;

type Labels = { [name: string]: string | number | undefined };

/**
 * The sum of several processes' metrics. What a process last told is kept when it dies, so that no counter falls
 * from one scrape to the next.
 */
export class PooledMetrics {
  readonly #living = new Map<number, MetricsSnapshot>();
  #dead: MetricsSnapshot | null = null;
  readonly #versions = new ClientVersions();

  update(pid: number, snapshot: MetricsSnapshot): void {
    this.#nameVersions(snapshot);
    this.#living.set(pid, snapshot);
  }

  /** Its last snapshot counts on, summed with those of the dead before it. */
  async bury(pid: number): Promise<void> {
    const last = this.#living.get(pid);
    this.#living.delete(pid);
    if (last === undefined) return;
    this.#dead = this.#dead === null ? last : await sum([this.#dead, last]).getMetricsAsJSON();
  }

  /** The same versions are named for all processes; what becomes one series is summed with the rest. */
  #nameVersions(snapshot: MetricsSnapshot): void {
    for (const { labels } of snapshot.flatMap<{ labels: Labels }>(({ values }) => values)) {
      const { client, client_version: version } = labels;
      if (version !== undefined) labels["client_version"] = this.#versions.named(`${client}`, `${version}`);
    }
  }

  text(): Promise<string> {
    return sum([...this.#living.values(), ...(this.#dead === null ? [] : [this.#dead])]).metrics();
  }
}

function sum(snapshots: MetricsSnapshot[]): ReturnType<typeof AggregatorRegistry.aggregate> {
  return AggregatorRegistry.aggregate(snapshots);
}
