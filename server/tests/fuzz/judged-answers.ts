import { isProblemCode, PROBLEMS } from "../../domain/problem.ts";
import type { RawReply } from "../support/http/raw-exchange.ts";
import { type Traffic, UNKNOWN_METHODS } from "./arbitrary-traffic.ts";

/** In no answer to another tenant. */
export const SECRET = "kept-from-acme@example.com";

/** What is wrong with an answer of the service, or null. */
export function faultOf(
  { status, headers, body }: Pick<RawReply, "status" | "headers" | "body">,
  isHead: boolean,
): string | null {
  if (body.includes(SECRET)) return "another tenant's customer";
  if (!headers.has("x-request-id") || headers.get("x-content-type-options") !== "nosniff") return "bare";
  if (status >= 500) return "5xx";
  if (status < 400 || (isHead && body === "")) return null;
  if (
    headers.get("content-type") !== "application/problem+json" ||
    headers.get("cache-control") !== "no-store"
  )
    return "no problem document";
  const { code, status: inBody } = JSON.parse(body) as { code: string; status: number };
  return isProblemCode(code) && PROBLEMS[code].status === status && inBody === status
    ? null
    : "another status than its code's";
}

/**
 * All that Bun answers before the service sees the request, and why; docs/http.md lists the same.
 * "closed": the connection is closed without an answer. Only bare answers that stand here are accepted.
 */
export const BARE: readonly {
  readonly why: string;
  readonly answer: number | "closed";
  /** @param headBytes of the request line and the header lines */
  readonly when: (traffic: Traffic, headBytes: number) => boolean;
}[] = [
  {
    why: "a header line that is none: control characters, no colon, no name, a blank in the name, a folded line",
    answer: 400,
    when: ({ lines }) => lines.some((line) => !/^[!#$%&'*+.^_`|~\w-]+:[\t\x20-\x7e\x80-\xff]*$/.test(line)),
  },
  { why: "more than 200 header lines", answer: 431, when: ({ lines }) => lines.length > 190 },
  {
    why: "request line and headers of more than 16 KiB",
    answer: 431,
    when: (_, headBytes) => headBytes > 16_000,
  },
  {
    why: "a method that its parser does not know",
    answer: "closed",
    when: ({ method }) => UNKNOWN_METHODS.includes(method),
  },
];
