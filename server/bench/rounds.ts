import type { Target } from "./targets.ts";

/** A server that is compared, and is started for each round. */
export type Server = { readonly name: string; readonly start: () => Promise<Target> };

export type RoundsPlan = {
  readonly rounds: number;
  /** How long each server is measured in a round. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
};

/**
 * All of `servers` in each round, one after the other; every other round the other way about.
 *
 * @param warmUp what each is asked before it is measured
 * @returns the figures of each server, by round
 */
export async function rounds<Figure>(
  servers: readonly Server[],
  plan: RoundsPlan,
  run: (target: Target, seconds: number) => Promise<Figure>,
  warmUp: (target: Target, seconds: number) => Promise<unknown> = run,
): Promise<Figure[][]> {
  const results: Figure[][] = servers.map(() => []);
  for (let round = 0; round < plan.rounds; round += 1) {
    const order = [...servers.entries()];
    if (round % 2 === 1) order.reverse();
    for (const [index, server] of order) {
      const figure = await started(server, async (target) => {
        await warmUp(target, plan.warmUpSeconds);
        return run(target, plan.seconds);
      });
      results[index]?.push(figure);
    }
  }
  return results;
}

export async function started<T>(server: Server, run: (target: Target) => Promise<T>): Promise<T> {
  const target = await server.start();
  try {
    return await run(target);
  } finally {
    await target.stop();
  }
}
