/**
 * A command (`serve` is one) that cannot do what it was
 * asked to do. The message says why and what to do next.
 */
export class CommandRefused extends Error {
  override readonly name = "CommandRefused";
}
