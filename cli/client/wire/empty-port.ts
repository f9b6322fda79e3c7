/**
 * True of a URL with a colon and no port behind its host, which would stand for port 80 or 443. It is left of
 * `http://host:$PORT` where the variable was not set.
 */
export function hasEmptyPort(url: string): boolean {
  return /^https?:\/\/[^/?#]*:(?:[/?#]|$)/i.test(url);
}
