/** `1 rule`, `2 rules`. */
export const amount = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`;
