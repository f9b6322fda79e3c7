import { Counter, type MetricValue, type Registry } from "prom-client";

type PlainCounterOptions = {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly registry: Registry;
  readonly values: () => MetricValue<string>[];
};

/**
 * A counter of the registry whose values are plain numbers of ours. Every request is counted,
 * and the library's own counting (it hashes the labels each time) costs a tenth of a read.
 */
export class PlainCounter extends Counter {
  readonly #values: () => MetricValue<string>[];

  constructor({ name, help, labelNames, registry, values }: PlainCounterOptions) {
    super({ name, help, labelNames: [...labelNames], registers: [registry] });
    this.#values = values;
  }

  override async get(): ReturnType<Counter["get"]> {
    return { ...(await super.get()), values: this.#values() };
  }
}
