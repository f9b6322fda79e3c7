/** An address for logs and messages, without a password. */
export function maskPassword(url: string): string {
  if (url.startsWith("sqlite:")) return url;
  // Not through URL: a text that is none (in quotes, without //) is masked too.
  const host = url.slice(url.lastIndexOf("@") + 1);
  const user = /^[a-z][a-z0-9+.-]*:\/\/[^:@/]*(?=.*@)/i.exec(url)?.[0] ?? "";
  const hasOnlyUser = /^[a-z][a-z0-9+.-]*:\/\/[^:@/]*@[^@]*$/i.test(url);
  const masked = host === url || hasOnlyUser ? url : `${user === "" ? "" : `${user}:`}***@${host}`;
  return masked.replace(/(password=)[^&]*/gi, "$1***");
}
