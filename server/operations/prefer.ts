/**
 * The preferences of a request that this service knows (RFC 7240). All others are ignored, as section 2 says.
 * Both patterns read a header in time that grows with its length alone.
 */

/** `Prefer: return=representation` (section 4.2). Of several `return` preferences the first counts. */
export function prefersRepresentation(prefer: string | null): boolean {
  const preference = /(?:^|[,;])[ \t]*return[ \t]*=[ \t]*"?([a-z]*)/i.exec(prefer ?? "")?.[1];
  return preference?.toLowerCase() === "representation";
}

/** `Prefer: changes`, a preference of our own: a 412 says who changed the customer. An empty value is none (section 2). */
export function prefersChanges(prefer: string | null): boolean {
  return /(?:^|,)[ \t]*changes[ \t]*(?:=[ \t]*(?:"")?[ \t]*)?(?:[,;]|$)/i.test(prefer ?? "");
}
