/**
 * A value, or the promise of one: an engine that can answer at once saves a read its turn of the event loop.
 */
export type MaybePromise<T> = T | Promise<T>;

/** Continues with the value as soon as it is there: at once, or when its promise resolves. */
export function andThen<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
