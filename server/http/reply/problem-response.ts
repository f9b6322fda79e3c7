import { PROBLEMS, type Problem, type ProblemCode } from "../../domain/problem.ts";
import { type Reply, replyHeaders } from "./reply.ts";

/**
 * The only maker of an error body (RFC 9457). A problem document is never stored:
 * RFC 6585, section 3 forbids it for 428, and the others are about one request.
 *
 * @param instance a UUID, new for each problem
 */
export function problemReply(problem: Problem, instance: string, publicUrl: string): Reply {
  const { code, detail, extensions, headers } = problem;
  return {
    status: PROBLEMS[code].status,
    headers: replyHeaders({
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      ...headers,
    }),
    body: JSON.stringify(problemDocument(code, detail, extensions, instance, publicUrl)),
    problem: code,
  };
}

/** The members in the order of RFC 9457, section 3.1, then our own. */
export function problemDocument(
  code: ProblemCode,
  detail: string,
  extensions: object | undefined,
  instance: string,
  publicUrl: string,
): object {
  const { status, title } = PROBLEMS[code];
  return {
    type: `${publicUrl}/problems/${code}`,
    title,
    status,
    detail,
    instance: `urn:uuid:${instance}`,
    code,
    ...extensions,
  };
}
