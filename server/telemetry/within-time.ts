/**
 * How long a scrape waits for the store. One that does not answer would otherwise keep
 * back the metrics that say so; what was known last counts then. Prometheus gives up after 10 s.
 */
const ANSWER_MS = 1_000;

/** @returns `otherwise` where the store does not answer within {@link ANSWER_MS} */
export async function withinTime<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  const { promise: late, resolve } = Promise.withResolvers<T>();
  const timer = setTimeout(() => resolve(otherwise), ANSWER_MS);
  return await Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
