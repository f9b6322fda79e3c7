import { AggregatorRegistry, type Registry } from "prom-client";

/** A process's metrics as they cross to another process. */
export type MetricsSnapshot = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/**
 * The sum of several processes' metrics. What a process last told is kept when it dies, so that no counter falls
 * from one scrape to the next.
 */
export class PooledMetrics {
  readonly #living = new Map<number, MetricsSnapshot>();
  #dead: MetricsSnapshot | null = null;

  update(pid: number, snapshot: MetricsSnapshot): void {
    this.#living.set(pid, snapshot);
  }

  /** Its last snapshot counts on, summed with those of the dead before it. */
  async bury(pid: number): Promise<void> {
    const last = this.#living.get(pid);
    this.#living.delete(pid);
    if (last === undefined) return;
    this.#dead = this.#dead === null ? last : await sum([this.#dead, last]).getMetricsAsJSON();
  }

  text(): Promise<string> {
    return sum([...this.#living.values(), ...(this.#dead === null ? [] : [this.#dead])]).metrics();
  }
}

function sum(snapshots: MetricsSnapshot[]): ReturnType<typeof AggregatorRegistry.aggregate> {
  return AggregatorRegistry.aggregate(snapshots);
}
