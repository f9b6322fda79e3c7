import { hasEmptyPort } from "../../client/wire/empty-port.ts";
import { UsageError } from "../../outcome/failure.ts";

/**
 * The base URL of a deployment: http or https, no credentials, no query, no trailing slash. The URL of the collection
 * is accepted too: one `/customers` at the end is removed, because people copy that URL. A deployment whose base path
 * really ends in /customers is given by its collection: https://host/customers/customers. So flags, variables and
 * profiles all hold a URL as it was written, and it is read here alone, once.
 * @param source names the setting in the message of the UsageError: `--url`, `CUSTOMERS_URL`.
 */
export function parseBaseUrl(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    const port = /^https?:\/\/[^/?#@]*:(\d+)(?:[/?#]|$)/i.exec(text)?.[1];
    if (port !== undefined && Number(port) > 65_535) {
      throw new UsageError(
        `${source}: "${text}" has the port ${port}`,
        "Ports end at 65535: correct the number.",
      );
    }
    throw new UsageError(
      `${source}: ${text.includes("@") ? "the value" : `"${text}"`} is not an http:// or https:// URL`,
      "Give the base URL, such as --url https://customers.example.com",
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(
      `${source}: the URL holds credentials, which would end in process lists and logs`,
      "Give the URL without them, and the credentials as --header-env 'Authorization: $VARIABLE'.",
    );
  }
  if (hasEmptyPort(text.trim())) {
    throw new UsageError(
      `${source}: "${text}" has no port after the colon`,
      "Give the port, or no colon for the usual one. Was the variable set that should hold it?",
    );
  }
  if (url.search !== "" || url.hash !== "") {
    throw new UsageError(
      `${source}: "${text}" has a query or fragment`,
      "Give the base URL, up to but without /customers.",
    );
  }
  return url.origin + url.pathname.replace(/\/+$/, "").replace(/\/customers$/, "");
}

/** Scheme, host and port; undefined where the text is no URL. */
export function originOf(url: string | undefined): string | undefined {
  return url !== undefined && URL.canParse(url) ? new URL(url).origin : undefined;
}
