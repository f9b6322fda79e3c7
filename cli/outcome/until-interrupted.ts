/** Thrown where a wait is given up before anything is sent; `program.ts` catches it. */
export class Interruption extends Error {}

/**
 * Waits for `work`, or for an interruption, which throws an Interruption. The opening of a pipe can't be taken
 * back while nobody opens its other end: it is left to the end of the process.
 */
export async function untilInterrupted<Value>(
  work: Promise<Value>,
  interrupted: AbortSignal,
): Promise<Value> {
  const interruption = new Promise<never>((_, reject) => {
    const stop = () => reject(new Interruption());
    if (interrupted.aborted) stop();
    interrupted.addEventListener("abort", stop, { once: true });
  });
  return await Promise.race([work, interruption]);
}
