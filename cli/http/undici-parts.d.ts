/**
 * The parts of undici that the client uses, each by its own file: without the others a `get` takes an eighth less processor
 * time. They are not of its public interface, so its version is pinned.
 */
declare module "undici/lib/dispatcher/agent.js" {
  import { Agent } from "undici/index.js";
  export default Agent;
}

declare module "undici/lib/core/errors.js" {
  import { errors } from "undici/index.js";
  export default errors;
}

declare module "undici/lib/core/symbols.js" {
  const symbols: {
    /** The option of a dispatch that is called with a function, which takes the waiting request out of the queue. */
    readonly kQueuedAbort: unique symbol;
    /** What reads the responses of a connection. */
    readonly kParser: unique symbol;
  };
  export default symbols;
  type Parser = { onHeadersComplete(status: number, upgrade: boolean, keepAlive: boolean): number };
  /** Of a connection that was made: the message of the diagnostics channel "undici:client:connected". */
  export type Connected = { socket: { [symbols.kParser]: Parser } };
}
