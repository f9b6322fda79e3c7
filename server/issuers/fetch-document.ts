import { isTrustedAddress } from "../domain/policy/issuer.ts";

export type FetchLimits = {
  /** For the whole document. */
  readonly timeoutMs: number;
  readonly bytesMax: number;
};

/** A document that is of no use. The message is for the log. */
export class DocumentRefused extends Error {
  override readonly name = "DocumentRefused";
}

/**
 * Fetches a JSON object. Redirects are not followed: they would lead to an address that the policy does not name.
 *
 * @throws DocumentRefused
 */
export async function fetchDocument(
  url: string,
  { timeoutMs, bytesMax }: FetchLimits,
): Promise<Readonly<Record<string, unknown>>> {
  if (!isTrustedAddress(url)) throw new DocumentRefused(`${url} is not an https address`);
  const end = new AbortController();
  const timer = setTimeout(() => end.abort(), timeoutMs);
  try {
    const headers = { accept: "application/json" };
    const response = await fetch(url, { headers, redirect: "manual", signal: end.signal });
    if (response.status !== 200) throw new DocumentRefused(`${url} answered ${response.status}, not 200`);
    const document = readJson(await textWithin(response, bytesMax), url);
    if (typeof document !== "object" || document === null || Array.isArray(document)) {
      throw new DocumentRefused(`${url} answered with JSON that is no object`);
    }
    return document as Readonly<Record<string, unknown>>;
  } catch (error) {
    if (error instanceof DocumentRefused) throw error;
    if (end.signal.aborted) throw new DocumentRefused(`${url} did not answer within ${timeoutMs} ms`);
    throw new DocumentRefused(`${url}: ${error instanceof Error ? error.message : error}`);
  } finally {
    clearTimeout(timer);
    // Ends the connection of an answer that was not read to its end.
    end.abort();
  }
}

/** The parser's own message repeats words of the text, and the fault is logged. */
function readJson(text: string, url: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new DocumentRefused(`${url} answered with what is not JSON`);
  }
}

async function textWithin(response: Response, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax)
      throw new DocumentRefused(`${response.url} answered with more than ${bytesMax} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
