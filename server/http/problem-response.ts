import { PROBLEMS, type Problem } from "../domain/problem.ts";
import type { Answer } from "./exchange.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * The only maker of an error body (RFC 9457). A problem document is never stored: RFC 6585, section 3 forbids it
 * for 428, and the others are about one request.
 *
 * @param requestId where it is a UUID, as those that the service makes are, it is the `instance` too
 */
export function problemResponse(problem: Problem, requestId: string, publicUrl: string): Answer {
  const { code, detail, extensions, headers } = problem;
  const { status, title } = PROBLEMS[code];
  return {
    status,
    headers: { "content-type": "application/problem+json", "cache-control": "no-store", ...headers },
    body: JSON.stringify({
      type: `${publicUrl}/problems/${code}`,
      title,
      status,
      detail,
      instance: `urn:uuid:${UUID.test(requestId) ? requestId : crypto.randomUUID()}`,
      code,
      ...extensions,
    }),
    problem: code,
  };
}
