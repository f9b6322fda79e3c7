/**
 * Which of the media types a client prefers by its Accept header (RFC 9110, section 12.5.1): the one with the
 * greatest weight, the first of several. The most specific range that matches a type gives its weight.
 *
 * @param offered in lower case, in the service's own order of preference
 * @returns the first one where none is acceptable: a page that was not asked for says more than 406
 */
export function preferredType<Type extends string>(
  accept: string | null,
  offered: readonly [Type, ...Type[]],
): Type {
  const ranges = (accept ?? "*/*").split(",").map(parseRange);
  let preferred = offered[0];
  let greatest = 0;
  for (const type of offered) {
    const wildcards = [type, `${type.slice(0, type.indexOf("/"))}/*`, "*/*"];
    const range = wildcards.map((name) => ranges.find((candidate) => candidate.name === name)).find(Boolean);
    if ((range?.weight ?? 0) <= greatest) continue;
    preferred = type;
    greatest = range?.weight ?? 0;
  }
  return preferred;
}

function parseRange(text: string): { readonly name: string; readonly weight: number } {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
  // A malformed weight counts as 0: the range is ignored.
  return { name, weight: /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight) : 0 };
}
