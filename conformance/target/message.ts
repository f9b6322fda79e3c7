/** What a thrown value says: anything may be thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The same with the place in the program, for a fault of the kit itself. */
export const stackOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);
