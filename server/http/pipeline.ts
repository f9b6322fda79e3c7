import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { Policy } from "../domain/policy/policy.ts";
import { type Problem, type Refusal, type Result, refuse } from "../domain/problem.ts";
import { StoreUnavailable } from "../storage/customers/customer-store.ts";
import { isExpiring } from "../storage/tokens/token-expiry.ts";
import type { Log } from "../telemetry/log/log.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import {
  authenticate,
  type CallerLookup,
  requireMetricsRole,
  requireTenant,
  type TenantCaller,
  tokenIn,
} from "./authentication.ts";
import { discardBody } from "./body/request-body.ts";
import type { Cors } from "./cors.ts";
import { EventLoopTurn } from "./event-loop-turn.ts";
import type { Access } from "./handler.ts";
import type { CallerLimits } from "./limits/caller-limits.ts";
import { MonitorTokens } from "./monitor-tokens.ts";
import { problemReply } from "./reply/problem-response.ts";
import type { Reply } from "./reply/reply.ts";
import type { RequestContext } from "./request-context.ts";

export type PipelineParts = CallerLookup & {
  readonly policy: () => Policy;
  readonly metrics: Metrics;
  /** Of the whole service: a listener that is replaced with its certificate must not forget what was used up. */
  readonly limits: CallerLimits;
  readonly cors: Cors;
  readonly log: Log;
  /** The base of absolute addresses, without a slash at its end; "" for paths. */
  readonly publicUrl: string;
  /** ms since 1970. */
  readonly now: () => number;
  /**
   * The address of the client: of the connection's other end, unless that is a trusted proxy. "" where nothing
   * listens; null once the client has reset its connection.
   */
  readonly addressOf: (request: Request) => string | null;
  /**
   * Whether each reply is its connection's last: the service is about to stop, or file descriptors run out.
   */
  readonly closesConnections: () => boolean;
};

/** Request ids are logged, so none may hold a token. */
const REQUEST_ID = /^(?!.*cst_[A-Za-z0-9]{40})[A-Za-z0-9._-]{1,64}$/;
/** A lock or a burst of writes is usually over by then. */
const RETRY_AFTER_SECONDS = "1";

/**
 * What every request passes, whatever its route: in comes a request, out goes the
 * one Response made for it. The caller is authenticated here, refusals and
 * failures become problem documents, and each request is counted and logged once.
 */
export class Pipeline {
  readonly #parts: PipelineParts;
  readonly #turn = new EventLoopTurn();
  readonly #monitors: CallerLookup;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
    this.#monitors = { tokens: new MonitorTokens(parts.tokens), signIn: parts.signIn };
  }

  answer(
    request: Request,
    route: RequestContext["route"],
    access: Access,
    parameter = "",
  ): MaybePromise<Response> {
    // Asked at once: the system forgets it when the connection is reset.
    const address = this.#parts.addressOf(request);
    if (address === null) return this.#dropGoneClient(request, route);
    const context = this.#contextOf(request, route, parameter, address);
    if (!this.#turn.isTooLong(context.startedAt)) return this.#answer(context, access);
    // Yield here so that timers and signals run even during a connection storm.
    return new Promise((next) => setImmediate(next)).then(() => this.#answer(context, access));
  }

  /**
   * Drops the request of a client that has reset its connection: no reply could reach it, and the log would have no
   * address.
   */
  #dropGoneClient({ method, headers }: Request, route: RequestContext["route"]): Response {
    this.#parts.log.logger.info(
      { method, route, requestId: requestIdOf(headers) },
      "the client closed its connection before its request was read; nothing was done",
    );
    return new Response(null, { status: 400 });
  }

  #contextOf(
    request: Request,
    route: RequestContext["route"],
    parameter: string,
    address: string,
  ): RequestContext {
    const { headers } = request;
    return {
      request,
      headers,
      route,
      parameter,
      address,
      requestId: requestIdOf(headers),
      startedAt: performance.now(),
      nowMs: this.#parts.now(),
      caller: null,
      rateLimit: null,
    };
  }

  #answer(context: RequestContext, access: Access): MaybePromise<Response> {
    try {
      const result = hasClearHost(context) ? this.#handle(context, access) : HOST_REFUSED;
      if (!(result instanceof Promise)) return this.#respond(context, this.#replyOf(context, result));
      return result.then(
        (settled) => this.#respond(context, this.#replyOf(context, settled)),
        (error) => this.#respond(context, this.#failure(context, error)),
      );
    } catch (error) {
      return this.#respond(context, this.#failure(context, error));
    }
  }

  #respond(context: RequestContext, reply: Reply): MaybePromise<Response> {
    const { request } = context;
    if (request.bodyUsed || request.body === null || isConnect(request)) return this.#finish(context, reply);
    return discardBody(request).then(() => this.#finish(context, reply));
  }

  /** Check 2 of the order of checks, then the route's own. */
  #handle(context: RequestContext, access: Access): MaybePromise<Result<Reply>> {
    if (access.callers === "anyone") return access.handle(context);
    const { policy } = this.#parts;
    const callers = access.callers === "monitors" ? this.#monitors : this.#parts;
    const token = tokenIn(context.headers.get("authorization"));
    return andThen(authenticate(callers, token, context.nowMs, context.address), (found) => {
      if (!found.ok) {
        const isWrongToken = token !== null && found.problem.code === "unauthenticated";
        return isWrongToken ? this.#refuseWrongToken(context, found) : found;
      }
      context.caller = found.value;
      if (access.callers === "tenants") {
        const caller = requireTenant(found.value);
        if (!caller.ok) return caller;
        const refusal = this.#refuseExcess(context, caller.value);
        if (refusal === null) return access.handle(context, caller.value);
        return this.#parts.limits.pause().then(() => refusal);
      }
      const caller = requireMetricsRole(found.value, policy());
      return caller.ok ? access.handle(context) : caller;
    });
  }

  /** After the look at the token: a valid one is never refused for the wrong ones of its address. */
  #refuseWrongToken({ startedAt, address }: RequestContext, refusal: Refusal): MaybePromise<Refusal> {
    const { policy, limits } = this.#parts;
    const quota = policy().wrongTokens;
    if (quota === null) return refusal;
    const excess = limits.admitWrongToken(quota, address, startedAt);
    return excess === null ? refusal : limits.pause().then(() => excess);
  }

  /** Before the body is read and anything is written, so that a limit never loses or doubles a write. */
  #refuseExcess(context: RequestContext, caller: TenantCaller): Refusal | null {
    const { policy, limits } = this.#parts;
    const limitsInForce = policy().limits;
    if (limitsInForce === null) return null;
    const { request, route, startedAt } = context;
    const admission = limits.admit(limitsInForce, caller, request.method, route, startedAt);
    context.rateLimit = admission.fields;
    return admission.refusal;
  }

  #replyOf(context: RequestContext, result: Result<Reply>): Reply {
    return result.ok ? result.value : this.#problem(context, result.problem);
  }

  /** The instance is the request id, unless the caller chose it: a caller may send the same one twice. */
  #problem({ headers, requestId }: RequestContext, problem: Problem): Reply {
    const isCallers = headers.get("x-request-id") === requestId;
    return problemReply(problem, isCallers ? crypto.randomUUID() : requestId, this.#parts.publicUrl);
  }

  /** A failure that no client can cause: the log says why, the reply does not. */
  #failure(context: RequestContext, error: unknown): Reply {
    const { requestId } = context;
    const { logger } = this.#parts.log;
    if (error instanceof StoreUnavailable) {
      logger.error({ requestId, cause: error.message }, "store unavailable");
      const { problem } = error.isOutcomeUnknown ? OUTCOME_UNKNOWN : STORE_UNAVAILABLE;
      return this.#problem(context, problem);
    }
    logger.error({ requestId, err: error }, "internal error");
    return this.#problem(context, INTERNAL_ERROR.problem);
  }

  #finish(context: RequestContext, reply: Reply): Response {
    const { request, headers: requestHeaders, route, requestId, caller, rateLimit } = context;
    const { status, etag, body, problem } = reply;
    const { method } = request;
    const response = new Response(body, { status, headers: reply.headers });
    const { headers } = response;
    if (etag !== undefined) headers.set("etag", etag);
    headers.set("x-request-id", requestId);
    if (caller !== null && isExpiring(caller.expiry, context.nowMs)) {
      headers.set("token-expires", new Date(caller.expiry.atMs).toUTCString());
    }
    if (rateLimit !== null) {
      headers.set("ratelimit-policy", rateLimit.policy);
      headers.set("ratelimit", rateLimit.state);
    }
    // The client opens a new connection for its next request,
    // which would be lost on this one (RFC 9112, section 9.6).
    const isLast = this.#parts.closesConnections() || isConnect(request) || asksToClose(requestHeaders);
    if (isLast) headers.set("connection", "close");
    // Bun leaves it out of replies to HEAD alone.
    if (method === "HEAD") headers.set("date", new Date(context.nowMs).toUTCString());
    this.#parts.cors.decorate(requestHeaders, headers);
    const durationMs = performance.now() - context.startedAt;
    const answered = {
      timeMs: Math.round(context.nowMs + durationMs),
      method,
      route,
      status,
      durationMs,
      requestId,
      caller,
      code: problem,
      isAllowedWithoutIfMatch: reply.allowedWithoutIfMatch === true,
      isReplayed: reply.isReplayed === true,
    };
    this.#parts.metrics.record(answered, requestHeaders);
    this.#parts.log.access(answered, context.address);
    return response;
  }
}

function requestIdOf(headers: Headers): string {
  const given = headers.get("x-request-id");
  return given !== null && REQUEST_ID.test(given) ? given : crypto.randomUUID();
}

const HOST_REFUSED = refuse(
  "malformed-request",
  "The request needs one Host header with a host name and an optional port. Send the name under which you reach the service.",
);
const STORE_UNAVAILABLE = refuse(
  "store-unavailable",
  "The database can't answer now. Try again; after a write read the customer first, since it was not acknowledged.",
  { headers: { "retry-after": RETRY_AFTER_SECONDS } },
);
const OUTCOME_UNKNOWN = refuse(
  "store-unavailable",
  "The database did not confirm this write, which may have been applied. Read the customer before you send it again, or repeat it with its Idempotency-Key.",
  { headers: { "retry-after": RETRY_AFTER_SECONDS } },
);
const INTERNAL_ERROR = refuse("internal-error", "The service failed. Report the request id.");

/** `uri-host [ ":" port ]` (RFC 3986, section 3.2.2), less the comma, with which Bun joins several Host lines. */
const HOST = /^(?:\[[\d.:A-Fa-f]+\]|[\w.~!$&'()*+;=%-]+)(?::\d*)?$/;

/**
 * One Host line with a host in it (RFC 9112, section 3.2). Bun gives a bare path for `url`
 * where it cannot use the host. HTTP/1.0 may leave the line out, as HAProxy's plain
 * `httpchk` does; with HTTP/1.1 Bun itself refuses that.
 */
function hasClearHost({ request: { url }, headers }: RequestContext): boolean {
  const host = headers.get("host");
  if (host === null) return true;
  const at = url.indexOf("://");
  return (at === 4 || at === 5) && url[at + 3] !== "/" && HOST.test(host);
}

/**
 * What follows the head of a CONNECT is neither its content (RFC 9110, section 9.3.6) nor, for Bun, another
 * request: the body never ends, and nothing on this connection is answered any more.
 */
function isConnect({ method }: Request): boolean {
  return method === "CONNECT";
}

/** `Connection: close` among the options of that header (RFC 9112, section 9.6). */
function asksToClose(headers: Headers): boolean {
  const connection = headers.get("connection");
  return connection !== null && /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(connection);
}
