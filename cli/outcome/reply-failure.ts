/** From a reply to the failure that a person reads: what happened, to which customer, and what to do next. */

import { parseJsonOrUndefined, plainText, REGISTRY } from "../client/customer.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../client/json.ts";
import { serverWaitMs } from "../client/read-retry.ts";
import type { CompleteReply, NoCompleteReply, Reply } from "../client/reply.ts";
import { isSuccess } from "../client/status.ts";
import { unclearReply } from "../client/verdict.ts";
import type { Exit } from "./exit-code.ts";
import type { Failure } from "./failure.ts";
import { nearestOf } from "./nearest.ts";

export type Subject = {
  /** What the request was about: `customer 0193…`, `the list of customers`. */
  what: string;
  /** The base URL, for what can't be reached. */
  url: string;
  /** The --fields that were asked for: a suggestion is made from them where the server makes none. */
  fields?: readonly string[] | undefined;
  /** Of the request, where it was not a plain reading of one customer. */
  method?: string | undefined;
  /** The request went to /customers or below it: 404 then says nothing of a customer. */
  collection?: boolean;
};

/** What to do where a deployment answers as if it did not know an operation. */
export function notOfferedHint(method: string | undefined): string {
  const hints: Record<string, string> = {
    PUT: "Every deployment of the specification takes this PUT: check the base URL, and that no proxy on the way forbids the method.",
    PATCH:
      "This deployment does not offer PATCH. Name and email alone are changed with PUT, which every deployment has.",
    DELETE: "This deployment does not offer deletions, or a proxy on the way forbids them.",
    POST: "This deployment does not offer it, or a proxy on the way forbids POST; or the base URL is wrong.",
    GET: "This deployment does not offer it, or the base URL is wrong: customers doctor ID looks at the way.",
  };
  return hints[method ?? "GET"] ?? "This deployment does not offer it.";
}

/** A read, or anything else that can't have changed anything. */
export function readFailure(reply: Reply, subject: Subject): Failure {
  if (reply.kind === "no-complete-reply") {
    return reply.cause === "interrupted"
      ? interrupted(`interrupted while ${subject.what} was read; nothing was written`)
      : unreached(reply, `${subject.what} could not be read from ${subject.url}`);
  }
  const exit =
    (reply.status >= 500 && !isNotOffered(reply, subject)) || reply.status === 429
      ? "unreachable"
      : statusExit(reply, subject);
  return refused(reply, `${subject.what} could not be read`, exit, subject);
}

/** A write that certainly was not applied: refused, or never sent. */
export function writeFailure(reply: Reply, doing: string, subject: Subject): Failure {
  if (reply.kind === "no-complete-reply") {
    return reply.cause === "interrupted"
      ? interrupted(`interrupted; ${subject.what} was not ${doing}, nothing was written`)
      : unreached(reply, `${subject.what} was not ${doing}: ${subject.url} could not be reached`);
  }
  const { status } = reply;
  const what = `${subject.what} was not ${doing}`;
  const failure = refused(reply, what, statusExit(reply, subject), subject);
  return isSuccess(status) ? { ...failure, message: `${what}: ${unclearReply(reply)}` } : failure;
}

/** Lists and creations are no part of what every deployment has (specification 4.4). */
function isNotOffered({ status }: CompleteReply, { collection = false }: Subject): boolean {
  return collection && (status === 404 || status === 405 || status === 410 || status === 501);
}

/** 503 and 429 are "not now": nothing was written, as with a server that can't be reached. */
function statusExit(reply: CompleteReply, subject: Subject): Failure["exit"] {
  if (isNotOffered(reply, subject)) return "failure";
  const exits: Record<number, Exclude<Exit, "done">> = {
    400: "invalid",
    401: "not-allowed",
    403: "not-allowed",
    404: "not-found",
    410: "not-found",
    412: "conflict",
    422: "invalid",
    428: "invalid",
    429: "unreachable",
    503: "unreachable",
  };
  return exits[reply.status] ?? "failure";
}

export function requestIdOf(reply: Reply): string | undefined {
  return reply.kind === "complete" ? reply.fields.get("x-request-id") : undefined;
}

function interrupted(message: string): Failure {
  return { exit: "interrupted", code: "interrupted", message };
}

function unreached(reply: NoCompleteReply, what: string): Failure {
  const hints: Record<NoCompleteReply["cause"], string> = {
    unreachable: "Check the URL, the network and --proxy; customers doctor looks at each of them.",
    tls: "Give the authority's certificate as --cacert PATH; --insecure switches the check off.",
    timeout: "Give it more time with --timeout, or see what holds the server up.",
    reset: "Something on the way broke the connection: try again; customers doctor looks at the way.",
    unreadable: "A proxy on the way encodes replies that were asked for plain; it must leave them alone.",
    interrupted: "Run it again.",
  };
  return {
    exit: "unreachable",
    code: reply.cause,
    message: `${what}: ${reply.detail}`,
    hint: reply.hint ?? hints[reply.cause],
  };
}

function refused(reply: CompleteReply, what: string, exit: Failure["exit"], subject: Subject): Failure {
  const problem = problemOf(reply);
  const code = textMember(problem, "code") ?? `http-${reply.status}`;
  const said = textMember(problem, "detail") ?? textMember(problem, "title");
  const failure: Failure = {
    exit,
    code,
    message: `${what}: ${sentence(reply, said, subject)}`,
    hint: hintFor(reply, problem, subject),
    details: errorLines(problem),
    status: reply.status,
  };
  const waitMs = serverWaitMs(reply.fields);
  if (waitMs !== undefined) failure.waitMs = waitMs;
  const requestId = requestIdOf(reply);
  if (requestId !== undefined) failure.requestId = requestId;
  if (problem !== undefined) failure.problem = problem;
  return failure;
}

/** Only the server's own explanation is quoted: the page of a proxy is not one. */
function problemOf(reply: CompleteReply): JsonObject | undefined {
  if (!/\bjson\b/i.test(reply.fields.get("content-type") ?? "")) return undefined;
  const body = parseJsonOrUndefined(reply.text);
  return isJsonObject(body) ? body : undefined;
}

function sentence(reply: CompleteReply, said: string | undefined, subject: Subject): string {
  const reasons: Record<number, string> = {
    400: "the server does not accept the request",
    401: "the server does not know the credentials",
    403: "the credentials do not allow it",
    404: "it does not exist",
    405: "the server does not know this operation",
    501: "the server does not know this operation",
    410: "it does not exist any more",
    412: "someone else changed it",
    415: "the server does not take this kind of body",
    422: "the server does not accept the values",
    428: "the server saw no If-Match",
    429: "the server asks for fewer requests",
    503: "the server does not serve now",
  };
  const { status } = reply;
  const reason =
    status >= 300 && status < 400
      ? "the server redirects to another place"
      : isNotOffered(reply, subject)
        ? "the server does not know this operation"
        : (reasons[reply.status] ?? "the server answered with an unexpected status");
  const empty = isSuccess(reply.status) ? "the reply is no JSON object" : reason;
  return `${empty} (${reply.status})${said === undefined ? "" : `: ${said}`}`;
}

function hintFor(reply: CompleteReply, problem: JsonObject | undefined, subject: Subject): string {
  const { status } = reply;
  const suggestion = fieldSuggestion(problem) ?? (status === 400 ? ownSuggestion(subject.fields) : undefined);
  if (suggestion !== undefined) return suggestion;
  if (status >= 300 && status < 400) {
    return `The server points to ${reply.fields.get("location") ?? "another place"}; if that is right, give it as --url (redirects are not followed: they could carry the token elsewhere).`;
  }
  if (status === 401)
    return "Check CUSTOMERS_TOKEN, --token-file or the profile's token; customers login stores a new one.";
  if (status === 403) return "Use credentials that allow it, or ask for fewer --fields.";
  if (status === 404 && subject.url.endsWith("/customers")) {
    return "The base URL should end before /customers, which the client adds itself.";
  }
  if (isNotOffered(reply, subject) || status === 405 || status === 501) return notOfferedHint(subject.method);
  if (status === 404)
    return `Check the id, and that ${subject.url} and the credentials belong to the right tenant.`;
  if (status === 428)
    return "The client always sends If-Match: a proxy on the way drops it, and must be told not to.";
  if (status === 429 || status === 503) {
    const asked = reply.fields.get("retry-after");
    const when = asked === undefined ? "later" : `when the server says (Retry-After: ${asked})`;
    return `Try again ${when}, or give it more time with --timeout.`;
  }
  if (status >= 500) return "Try again later; if it lasts, give the request id to those who run the server.";
  if (isSuccess(status)) return `Check that ${subject.url} is the base URL of a customer service.`;
  return "Correct the request and run it again.";
}

/** The server's own suggestion where it makes one, else the nearest of the fields that it names. */
function fieldSuggestion(problem: JsonObject | undefined): string | undefined {
  if (problem === undefined) return undefined;
  const suggested = problem.get("didYouMean");
  const selectable = textItems(problem.get("selectableFields"));
  const unknown = textItems(problem.get("unknownFields"));
  const near = textItems(typeof suggested === "string" ? [suggested] : (suggested ?? null));
  const nearest = near.length > 0 ? near : unknown.flatMap((name) => nearestOf(name, selectable) ?? []);
  const known = selectable.length === 0 ? "" : ` Fields that can be asked for: ${selectable.join(", ")}.`;
  if (nearest.length > 0)
    return `Did you mean ${[...new Set(nearest)].map((name) => `"${name}"`).join(" and ")}?${known}`;
  return known === "" ? undefined : known.trim();
}

/** The server refused the request and does not say why: a name that is nearly a known one may be the reason. */
function ownSuggestion(fields: readonly string[] | undefined): string | undefined {
  for (const field of fields ?? []) {
    const near = REGISTRY.includes(field.toLowerCase()) ? undefined : nearestOf(field, REGISTRY);
    if (near !== undefined) return `Did you mean "${near}" by "${field}"?`;
  }
  return undefined;
}

function errorLines(problem: JsonObject | undefined): string[] {
  const errors = problem?.get("errors");
  const lines = isJsonArray(errors)
    ? errors.filter(isJsonObject).map((error) => {
        const place = error.get("pointer");
        const detail = plainText(error.get("detail") ?? "");
        return oneLine(`  ${typeof place === "string" && place !== "" ? `${place}: ` : ""}${detail}`);
      })
    : [];
  const diagnosis = textMember(problem, "diagnosis");
  return diagnosis === undefined ? lines : [...lines, `  ${diagnosis}`];
}

function textMember(problem: JsonObject | undefined, name: string): string | undefined {
  const value = problem?.get(name);
  return typeof value === "string" && value !== "" ? oneLine(value) : undefined;
}

function textItems(value: Json | undefined): string[] {
  return isJsonArray(value) ? value.filter((item) => typeof item === "string").map(oneLine) : [];
}

/** A server must not be able to write lines of its own into a log. */
function oneLine(text: string): string {
  return text.replaceAll(/\s*[\r\n\u0085\u2028\u2029]+\s*/g, " ");
}
