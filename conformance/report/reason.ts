/**
 * The reason of an outcome, once all outcomes are known. One that points to a rule which passed would send its reader
 * the wrong way: what this rule met, the other did not, so it comes and goes.
 *
 * @param passed ids of the rules that passed
 */
export function settledReason(reason: string, passed: ReadonlySet<string>): string {
  return reason.replace(/; see ((?:[A-Z]{3}-\d\d)(?: and [A-Z]{3}-\d\d)*)/g, (_, list: string) => {
    const named = list.split(" and ");
    const guilty = named.filter((id) => !passed.has(id));
    if (guilty.length > 0) return `; see ${guilty.join(" and ")}`;
    return `; ${named.join(" and ")} passed, so it is not always so`;
  });
}
