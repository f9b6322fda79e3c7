/** A request as a curl line that runs as pasted, once the variables that stand for credentials are set. */
import type { Exchange } from "./report.ts";

const SENT_BY_CURL = new Set(["user-agent", "accept"]);

export function curlLine({ request }: Exchange): string {
  const parts = ["curl -i"];
  if (request.method !== "GET") parts.push(`-X ${request.method}`);
  parts.push(quote(request.url));
  for (const [name, value] of request.headers) {
    if (SENT_BY_CURL.has(name.toLowerCase())) continue;
    // curl drops a header without a value; a semicolon makes it send one that is empty.
    parts.push(`-H ${value.trim() === "" ? quote(`${name};`) : quote(`${name}: ${value}`)}`);
  }
  if (request.body !== null) parts.push(`--data-binary ${quote(request.body)}`);
  return parts.join(" ");
}

/** A shell word; `$NAME` of a masked secret is left to the shell, everything else is literal. */
function quote(text: string): string {
  const variable = /\$\{?[A-Z][A-Z0-9_]*\}?/g;
  if (!variable.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  const escaped = text.replace(/[\\"`]/g, "\\$&").replace(/\$(?!\{?[A-Z][A-Z0-9_]*\}?)/g, "\\$");
  return `"${escaped}"`;
}
