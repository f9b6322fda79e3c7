import type { Span, Target } from "./targets.ts";

/** A server that is compared, and is started for each round. */
export type Server = { readonly name: string; readonly start: () => Promise<Target> };

/**
 * All of `servers` in each round, one after the other; every other round the other way about.
 *
 * @returns the figures of each server, by round
 */
export async function rounds<Figure>(
  servers: readonly Server[],
  plan: Span & { readonly rounds: number },
  run: (target: Target, span: Span) => Promise<Figure>,
): Promise<Figure[][]> {
  const results: Figure[][] = servers.map(() => []);
  for (let round = 0; round < plan.rounds; round += 1) {
    const order = [...servers.entries()];
    if (round % 2 === 1) order.reverse();
    for (const [index, server] of order) {
      results[index]?.push(await started(server, (target) => run(target, plan)));
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
