/** The two counters of 7.4, as Prometheus text or OpenMetrics. */

import type { Counter } from "./seams.ts";
import type { Deployment } from "./sound-options.ts";

const NAME = { required: "http_precondition_required", failed: "http_precondition_failed" } as const;

export class Counters {
  readonly #values = new Map<string, number>();

  add(counter: Counter, method: string, tenant: string): void {
    const key = `${counter} ${method} ${tenant}`;
    this.#values.set(key, (this.#values.get(key) ?? 0) + 1);
  }

  render(shape: Exclude<Deployment["metrics"], "absent">): string {
    const open = shape.format === "openmetrics";
    const families = (["required", "failed"] as const).map((counter) => {
      const rows = [...this.#values].filter(([key]) => key.startsWith(`${counter} `));
      const family = open ? NAME[counter] : `${NAME[counter]}_total`;
      const sample = (labels: string, value: number) => `${NAME[counter]}_total${labels} ${value}`;
      const samples = shape.labels
        ? rows.map(([key, value]) => {
            const [, method, tenant] = key.split(" ");
            return sample(`{method="${method}",tenant="${tenant}",note="a\\"b\\\\c, {d} e\\nf"}`, value);
          })
        : [
            sample(
              "",
              rows.reduce((sum, [, value]) => sum + value, 0),
            ),
          ];
      return [`# HELP ${family} Refused writes.`, `# TYPE ${family} counter`, ...samples].join("\n");
    });
    const other = "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.7e+09";
    return `${[...families, other, ...(open ? ["# EOF"] : [])].join("\n")}\n`;
  }
}
