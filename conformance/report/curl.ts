/** A request as a curl line that runs as pasted, once the variables that stand for credentials are set. */
import type { Exchange } from "./schema.ts";

const SENT_BY_CURL = new Set(["user-agent", "accept"]);

/** @param before what was sent before it on the same connection, which curl keeps for what follows `--next` */
export function curlLine(exchange: Exchange, before?: Exchange): string {
  const lead = before === undefined ? [] : [...optionsOf(before), "--next"];
  return ["curl", ...lead, ...optionsOf(exchange)].join(" ");
}

function optionsOf({ request, framing }: Exchange): string[] {
  const parts = ["-i"];
  if (framing === "http/1.0") parts.push("--http1.0");
  if (framing === "absolute-form") parts.push(`--request-target ${quote(request.url)}`);
  // curl resolves dot segments and would send another address.
  if (/\/\.{1,2}\//.test(request.url)) parts.push("--path-as-is");
  if (request.method !== "GET") parts.push(`-X ${request.method}`);
  parts.push(quote(request.url));
  for (const [name, value] of request.headers) {
    if (SENT_BY_CURL.has(name.toLowerCase())) continue;
    // curl drops a header without a value; a semicolon makes it send one that is empty.
    parts.push(`-H ${value.trim() === "" ? quote(`${name};`) : quote(`${name}: ${value}`)}`);
  }
  if (request.body === null) return parts;
  const typed = request.headers.some(([name]) => name.toLowerCase() === "content-type");
  // Else curl calls the body a form.
  if (!typed) parts.push("-H 'Content-Type:'");
  if (framing === "chunked") parts.push("-H 'Transfer-Encoding: chunked'");
  parts.push(`--data-binary ${quote(request.body)}`);
  return parts;
}

/** `$NAME` of a masked secret is left to the shell; everything else is literal. */
function quote(text: string): string {
  const variable = /\$\{?[A-Z][A-Z0-9_]*\}?/;
  if (variable.test(text)) {
    const escaped = text.replace(/[\\"`]/g, "\\$&").replace(/\$(?!\{?[A-Z][A-Z0-9_]*\}?)/g, "\\$");
    return `"${escaped}"`;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\x00-\x1f\x7f-\uffff]/.test(text)) {
    const literal = [...text].map((character) => {
      const code = character.charCodeAt(0);
      if (character === "'" || character === "\\") return `\\${character}`;
      // Header values are bytes; a body is UTF-8 as it stands.
      return code < 0x20 || code === 0x7f ? `\\x${code.toString(16).padStart(2, "0")}` : character;
    });
    return `$'${literal.join("")}'`;
  }
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
