/**
 * Works on a stream with bounded concurrency. Items with the same key are worked on one after another in the
 * order of the stream: of two rows for one customer the later one must win.
 */
export async function forEachConcurrently<Item>(
  items: AsyncIterable<Item>,
  {
    concurrency,
    keyOf,
    stopped,
    work,
  }: {
    /** Items in work or waiting for one with their key; at least 1. */
    concurrency: number;
    keyOf: (item: Item) => string | undefined;
    /** Asked before an item begins; once true, nothing more begins. */
    stopped: () => boolean;
    work: (item: Item) => Promise<void>;
  },
): Promise<void> {
  const lastOf = new Map<string, Promise<void>>();
  let inWork = 0;
  let wake: () => void = () => {};
  let broken: { error: unknown } | undefined;
  const untilWoken = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });

  const begin = async (item: Item, before: Promise<void> | undefined): Promise<void> => {
    await before;
    try {
      if (!stopped() && broken === undefined) await work(item);
    } catch (error) {
      broken ??= { error };
    }
    inWork -= 1;
    wake();
  };

  try {
    for await (const item of items) {
      if (stopped() || broken !== undefined) break;
      const key = keyOf(item);
      inWork += 1;
      const task = begin(item, key === undefined ? undefined : lastOf.get(key));
      if (key !== undefined) {
        lastOf.set(key, task);
        task.then(() => {
          if (lastOf.get(key) === task) lastOf.delete(key);
        });
      }
      while (inWork >= concurrency) await untilWoken();
    }
  } catch (error) {
    broken ??= { error }; // of the stream itself: what is in work is still waited for
  }
  while (inWork > 0) await untilWoken();
  if (broken !== undefined) throw broken.error;
}
