/**
 * Pairwise testing: rows in which every two levels of any two factors meet, since most faults need one condition or two.
 */

import type { Attempt } from "../attempt.ts";

type Factors = Readonly<Record<string, readonly unknown[]>>;
type Row<F extends Factors> = { readonly [K in keyof F]: F[K][number] };

/**
 * The rows of an orthogonal array of strength two (Bush, Annals of Mathematical Statistics 23, 1952): modulo a prime no smaller
 * than the number of levels, `i + k·j` takes every pair of values in every two columns k, and so does `j` beside each of them.
 * They are the square of the prime many.
 *
 * @param factors each with one level or more
 * @param turn other rows for another turn: all pairs again, and other triples
 */
export function pairs<F extends Factors>(factors: F, turn = 0): Row<F>[] {
  const columns = Object.entries(factors);
  const prime = primeFrom(Math.max(columns.length - 1, ...columns.map(([, levels]) => levels.length)));
  const numbers = [...Array(prime).keys()];
  return numbers.flatMap((i) =>
    numbers.map((j) => {
      const row = columns.map(([name, levels], k) => {
        const index = (k === prime ? j : i + k * j + turn * k * k) % prime;
        return [name, levels[index % levels.length]];
      });
      return Object.fromEntries(row) as Row<F>;
    }),
  );
}

/** A short run tries fewer. */
export function someOf<T>(t: Attempt, combinations: readonly T[]): readonly T[] {
  return t.leavesOut("three of four combinations")
    ? combinations.filter((_, index) => index % 4 === 0)
    : combinations;
}

function primeFrom(least: number): number {
  for (let candidate = Math.max(2, least); ; candidate += 1) {
    const divisors = [...Array(candidate).keys()].slice(2);
    if (divisors.every((divisor) => candidate % divisor !== 0)) return candidate;
  }
}
