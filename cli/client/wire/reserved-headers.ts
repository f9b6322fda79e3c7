/** The client decides these itself; another value would break what it promises. */
const RESERVED =
  /^(?:if-match|if-none-match|content-length|transfer-encoding|connection|host|idempotency-key|accept-encoding|proxy-authorization)$/i;

/** True of a header that no setting may add to every request. */
export function isReservedHeader(name: string): boolean {
  return RESERVED.test(name);
}
