/**
 * Waits until all have ended, even where one fails. `Promise.all` would leave the others under way, and their writes
 * would look like somebody else's to the rule that comes next.
 * @throws the first failure
 */
export async function together<T>(under: readonly Promise<T>[]): Promise<T[]> {
  const outcomes = await Promise.allSettled(under);
  return outcomes.map((outcome) => {
    if (outcome.status === "rejected") throw outcome.reason;
    return outcome.value;
  });
}
