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
  /** The option of a dispatch that is called with a function, which takes the waiting request out of the queue. */
  const symbols: { readonly kQueuedAbort: unique symbol };
  export default symbols;
}
