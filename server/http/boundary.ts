import { type Problem, type Result, refuse } from "../domain/problem.ts";
import { type MaybePromise, StoreUnavailable } from "../storage/customer-store.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Cors } from "./cors.ts";
import type { Answer, Exchange, RouteTemplate } from "./exchange.ts";
import { problemResponse } from "./problem-response.ts";
import { Turn } from "./turn.ts";

export type Handler = (exchange: Exchange) => MaybePromise<Result<Answer>>;

export type BoundaryParts = {
  readonly metrics: Metrics;
  readonly cors: Cors;
  readonly log: Log;
  /** The base of absolute addresses, without a slash at its end; "" for paths. */
  readonly publicUrl: string;
  /** ms since 1970. */
  readonly now: () => number;
  /** Whether the service is about to stop: then each answer is its connection's last. */
  readonly isStopping: () => boolean;
};

/** Nothing with a token in it: request ids are logged. */
const REQUEST_ID = /^(?!.*cst_[A-Za-z0-9]{40})[A-Za-z0-9._-]{1,64}$/;
const RETRY_AFTER_SECONDS = "1";

/**
 * The edge of every exchange: in comes a request, out goes the one Response made for it. Refusals become
 * problem documents here, failures too; here each exchange is counted and logged once.
 */
export class Boundary {
  readonly #parts: BoundaryParts;
  readonly #turn = new Turn();

  constructor(parts: BoundaryParts) {
    this.#parts = parts;
  }

  answer(request: Request, route: RouteTemplate, handle: Handler, parameter = ""): MaybePromise<Response> {
    const exchange = this.#begin(request, route, parameter);
    if (!this.#turn.isOver(exchange.startedAt)) return this.#answer(exchange, handle);
    // A client that waits sends nothing new, and that ends the turn.
    return new Promise((next) => setImmediate(next)).then(() => this.#answer(exchange, handle));
  }

  #answer(exchange: Exchange, handle: Handler): MaybePromise<Response> {
    try {
      const result = hasUsableHost(exchange.request) ? handle(exchange) : HOST_REFUSED;
      if (!(result instanceof Promise)) return this.#finish(exchange, this.#toAnswer(exchange, result));
      return result.then(
        (settled) => this.#finish(exchange, this.#toAnswer(exchange, settled)),
        (error) => this.#finish(exchange, this.#failed(exchange, error)),
      );
    } catch (error) {
      return this.#finish(exchange, this.#failed(exchange, error));
    }
  }

  #begin(request: Request, route: RouteTemplate, parameter: string): Exchange {
    const given = request.headers.get("x-request-id");
    const requestId = given !== null && REQUEST_ID.test(given) ? given : crypto.randomUUID();
    return {
      request,
      route,
      parameter,
      requestId,
      startedAt: performance.now(),
      nowMs: this.#parts.now(),
      caller: null,
    };
  }

  #toAnswer(exchange: Exchange, result: Result<Answer>): Answer {
    return result.ok ? result.value : this.#problem(exchange, result.problem);
  }

  /** The instance is the request id where that is ours; a caller may send the same one twice. */
  #problem({ request, requestId }: Exchange, problem: Problem): Answer {
    const isCallers = request.headers.get("x-request-id") === requestId;
    return problemResponse(problem, isCallers ? crypto.randomUUID() : requestId, this.#parts.publicUrl);
  }

  /** What no client can cause: logged here, answered without a word of it. */
  #failed(exchange: Exchange, error: unknown): Answer {
    const { requestId } = exchange;
    if (error instanceof StoreUnavailable) {
      this.#parts.log.logger.error({ requestId, cause: error.message }, "store unavailable");
      const headers = { "retry-after": RETRY_AFTER_SECONDS };
      return this.#problem(
        exchange,
        refuse(
          "store-unavailable",
          "The database can't answer now. Try again; after a write read the customer first, since it was not acknowledged.",
          {
            headers,
          },
        ).problem,
      );
    }
    this.#parts.log.logger.error({ requestId, err: error }, "internal error");
    return this.#problem(
      exchange,
      refuse("internal-error", "The service failed. Report the request id.").problem,
    );
  }

  #finish(exchange: Exchange, answer: Answer): Response {
    const { request, route, requestId, caller } = exchange;
    const { status, headers, etag, body, problem } = answer;
    const response = new Response(body, { status, headers });
    if (etag !== undefined) response.headers.set("etag", etag);
    response.headers.set("x-request-id", requestId);
    // Whoever is told opens another connection; whoever is not loses the next request (RFC 9112, section 9.6).
    if (this.#parts.isStopping()) response.headers.set("connection", "close");
    this.#parts.cors.decorate(request, response.headers);
    const durationMs = performance.now() - exchange.startedAt;
    this.#parts.metrics.record(exchange, answer, durationMs / 1000);
    this.#parts.log.access({
      timeMs: Math.round(exchange.nowMs + durationMs),
      method: request.method,
      route,
      status,
      durationMs,
      requestId,
      caller,
      code: problem,
      isAllowedWithoutIfMatch: answer.allowedWithoutIfMatch === true,
    });
    return response;
  }
}

const HOST_REFUSED = refuse(
  "malformed-request",
  "The Host header is not a host name with an optional port. Send the name under which you reach the service.",
);

/** With an unusable Host header the address of the request is a bare path, and what was routed is unsure. */
function hasUsableHost({ url }: Request): boolean {
  const at = url.indexOf("://");
  return (at === 4 || at === 5) && url[at + 3] !== "/";
}
