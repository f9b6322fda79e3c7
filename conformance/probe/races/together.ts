/**
 * Waits until all have ended, even where one fails. `Promise.all` would leave the others under way, and their writes
 * would look like somebody else's to the rule that comes next.
 * @throws what failed first
 */
export async function together<T>(under: readonly Promise<T>[]): Promise<T[]> {
  try {
    return await Promise.all(under);
  } finally {
    await Promise.allSettled(under);
  }
}
