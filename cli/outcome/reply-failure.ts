/**
 * From a reply to the failure that a person reads: what happened, to which customer, and what to do next.
 */

import { parseJsonOrUndefined, plainText, REGISTRY, shownCustomer } from "../client/customer.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../client/json.ts";
import type { ListFailure } from "../client/pages.ts";
import type { ReadRefusal, Refusal } from "../client/refusal.ts";
import { serverWaitMs } from "../client/wire/read-retry.ts";
import { type CompleteReply, type NoCompleteReply, type Reply, requestIdOf } from "../client/wire/reply.ts";
import { isSuccess, meaningOf, type RefusalKind } from "../client/wire/status.ts";
import type { Exit } from "./exit-code.ts";
import { type Failure, failure } from "./failure.ts";
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
  /** What the reply should list; customers, where the request went to /customers. */
  items?: string;
  /** False: the request named no version, as `customers api` may. */
  conditional?: boolean;
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

/**
 * A failure before its sentence is put together: `claim` says what was not done, `why` says the reason, and
 * `tail` that nothing was written, which does not hold after a write of unknown outcome.
 */
export type Reason = Omit<Failure, "kind" | "message"> & { claim: string; why: string; tail?: string };

export function inOneSentence({ claim, why, tail = "", ...rest }: Reason): Failure {
  return { ...rest, kind: "failure", message: `${claim}: ${why}${tail}` };
}

/** A read, or anything else that can't have changed anything. */
export function readFailure(refusal: ReadRefusal | ListFailure, subject: Subject): Failure {
  return refusal.kind === "interrupted"
    ? interrupted(`interrupted while ${subject.what} was read; nothing was written`)
    : inOneSentence(readReason(refusal, subject));
}

export function listFailure(
  stop: ReadRefusal | ListFailure,
  { url, fields, email }: { url: string; fields?: readonly string[] | undefined; email?: string | undefined },
): Failure {
  const method = email === undefined ? "GET" : "POST"; // a search
  return readFailure(stop, { what: "the list of customers", url, fields, method, collection: true });
}

/** The history is an addition of this project's service, behind an operation that most roles lack. */
export function historyFailure(
  stop: ReadRefusal | ListFailure,
  { id, url }: { id: string; url: string },
): Failure {
  const collection = stop.kind === "not-offered";
  const reason = readFailure(stop, {
    what: `the history of customer ${id}`,
    url,
    collection,
    items: "changes",
  });
  const hint = HISTORY_HINTS[stop.kind];
  return hint === undefined ? reason : { ...reason, hint };
}

const HISTORY_HINTS: { readonly [kind in (ReadRefusal | ListFailure)["kind"]]?: string } = {
  forbidden:
    'Ask those who run the service for a token whose role has the operation "history"; reading a customer is not enough.',
  "not-offered": "This deployment has no history of customers: it is an addition of this project's service.",
};

/** A write that certainly was not applied: refused, or never sent. */
export function writeFailure(refusal: Refusal, doing: string, subject: Subject): Failure {
  return refusal.kind === "interrupted"
    ? interrupted(`interrupted; ${subject.what} was not ${doing}, nothing was written`)
    : inOneSentence(writeReason(refusal, doing, subject));
}

export function readReason(refusal: ReadRefusal | ListFailure, subject: Subject): Reason {
  const claim = `${subject.what} could not be read`;
  switch (refusal.kind) {
    case "unreachable":
    case "interrupted":
      return unreached(refusal.reply, `${claim} from ${subject.url}`);
    case "mistaken":
      return refusal.shown === undefined
        ? unbelieved(claim, "the answer shows no id", notAService(subject.url))
        : unbelieved(claim, `the server answered with customer ${refusal.shown}`, MIXED_UP);
    case "circle":
      return unbelieved(
        `${subject.what} goes round in a circle`,
        `${subject.url} named the same next page twice`,
      );
    case "unfiltered":
      return refusal.shown
        ? unbelieved(
            `the server does not filter by ${refusal.field}`,
            `it answered with customers that have another ${refusal.field}`,
            `List without --${refusal.field}, and filter the output.`,
          )
        : unbelieved(
            `it can't be checked whether the server filters by ${refusal.field}`,
            "it does not show that field",
            `Name the fields that you need: --fields id,${refusal.field}`,
          );
    case "next-elsewhere":
      return unbelieved(
        `${subject.what} is not complete`,
        `its next page is said to be at ${refusal.place}, outside of ${subject.url}`,
        "If that is the service's own address, give it as --url; if not, the service does not know the address under which it is reached.",
      );
    case "next-unknown":
      return unbelieved(
        `${subject.what} is not complete`,
        `the reply says by "${refusal.member}" that there is more, in a way that this client can't follow`,
        'It follows Link: <…>; rel="next", links in the body, and a cursor named "next". A larger page may hold all of it: --limit, and --page-size of export.',
      );
  }
  const { reply } = refusal;
  if (refusal.kind === "not-a-service" && meaningOf(reply.status).kind === "not-found") {
    const why = isPage(reply) ? aPage(reply) : `${reply.status}, also to a field that does not exist`;
    return { ...unbelieved(claim, why, notAService(subject.url)), code: NOT_A_SERVICE };
  }
  // A read that a server can't answer now leaves nothing undecided: it is as if the server were not there.
  const failing = refusal.kind === "server-error" && !isNotOffered(reply, subject);
  return refused(refusal, claim, failing ? "unreachable" : statusExit(refusal, subject), subject);
}

/** The code of a failure that every customer at this base URL would meet. */
export const NOT_A_SERVICE = "not-a-service";

/** A reply that came, and does not say what a service says. */
function unbelieved(claim: string, why: string, hint?: string): Reason {
  return { ...failure("failure", "", hint), claim, why };
}

export function writeReason(refusal: Refusal, doing: string, subject: Subject): Reason {
  const claim = `${subject.what} was not ${doing}`;
  if (refusal.kind === "unreachable" || refusal.kind === "interrupted")
    return unreached(refusal.reply, `${claim}: ${subject.url} could not be reached`);
  const reason = refused(refusal, claim, statusExit(refusal, subject), subject);
  if (refusal.reply.status === 304) return { ...reason, why: unclearReply(refusal.reply) };
  if (!isSuccess(refusal.reply.status)) return reason;
  return { ...reason, why: unclearReply(refusal.reply), tail: UNMOVED };
}

/** After an unclear success the loop says "was not updated" only where a reading showed the tag that was sent. */
const UNMOVED = "; a reading after it shows the version that was to change";

/** What was unclear about a reply, in words that continue "no clear reply: …". */
export function unclearReply(reply: Reply): string {
  if (reply.kind === "no-complete-reply") return reply.detail;
  const { status, fields } = reply;
  const place = fields.get("location");
  if (status === 304) return "the server answered 304, which no write may be";
  if (meaningOf(status).kind === "redirected" && place !== undefined)
    return `the server answered ${status}, a redirect to ${oneLine(place)}`;
  if (!isSuccess(status)) return `the server answered ${status}`;
  if (status === 202) return `the server answered 202: it has taken the request, and not done it yet`;
  if (status !== 200 && status !== 201 && status !== 204)
    return `the server answered ${status}, which says nothing about this write`;
  const type = fields.get("content-type")?.split(";")[0] ?? (reply.text === "" ? "no body" : "untyped text");
  const shows = !type.includes("problem") && shownCustomer(reply) !== undefined;
  if (status === 204 || shows)
    return `the answer, ${status}, shows a customer or a version that this write did not make`;
  return `the answer, ${status} with ${type}, shows no customer; perhaps a proxy answered`;
}

/** What to do where something else than a customer service answers. */
export function notAService(url: string): string {
  return `Check that ${url} is the base URL of a customer service. A proxy or a login page on the way may answer too.`;
}

const MIXED_UP = "A cache or a proxy on the way mixes up replies: customers doctor ID looks for one.";
const NO_READING = "a customer service does not answer a read like this";

function isPage({ fields }: CompleteReply): boolean {
  return /\bhtml\b/i.test(fields.get("content-type") ?? "");
}

function aPage({ status }: CompleteReply): string {
  return `the answer is a web page, not one of a customer service (${status})`;
}

/** Lists and creations are no part of what every deployment has (specification 4.4). */
function isNotOffered({ status }: CompleteReply, { collection = false }: Subject): boolean {
  const { kind } = meaningOf(status);
  return collection && (kind === "not-found" || kind === "not-offered");
}

const UNEXPECTED = "the server answered with an unexpected status";
const NOT_OFFERED = "the server does not know this operation";

/**
 * The exit, and the sentence that continues "… could not be read: ". 503 and 429 are "not now": nothing was
 * written, as with a server that can't be reached.
 */
const KINDS = {
  invalid: ["invalid", "the server does not accept the request"],
  unauthenticated: ["not-allowed", "the server does not know the credentials"],
  forbidden: ["not-allowed", "the credentials do not allow it"],
  "not-found": ["not-found", "it does not exist"],
  "not-offered": ["failure", NOT_OFFERED],
  stale: ["conflict", "someone else changed it"],
  "precondition-required": ["invalid", "the server saw no If-Match"],
  "proxy-credentials": ["unreachable", "a proxy asks for credentials"],
  busy: ["unreachable", "the server asks for fewer requests"],
  unavailable: ["unreachable", "the server does not serve now"],
  "server-error": ["failure", UNEXPECTED],
  redirected: ["failure", "the server redirects to another place"],
  "not-a-service": ["failure", "the reply is no JSON object"],
  unexpected: ["failure", UNEXPECTED],
} as const satisfies Record<RefusalKind, readonly [Exclude<Exit, "done">, string]>;

/** Where the status says more than its kind. */
const SENTENCES: Readonly<Record<number, string>> = {
  202: "the server has taken the request, and not done it yet",
  304: "a service answers so only where the request names a version, and this one names none",
  408: "the server gave up waiting for the request",
  409: "the service refuses it now",
  415: "the server does not take this kind of body",
  422: "the server does not accept the values",
};

type Refused = Extract<Refusal, { reply: CompleteReply }>;

function statusExit({ kind, reply }: Refused, subject: Subject): Failure["exit"] {
  return isNotOffered(reply, subject) ? "failure" : KINDS[kind][0];
}

function interrupted(message: string): Failure {
  return failure("interrupted", message);
}

function unreached(reply: NoCompleteReply, claim: string): Reason {
  const hints: Record<NoCompleteReply["cause"], string> = {
    unreachable: "Check the URL, the network and --proxy; customers doctor looks at each of them.",
    tls: "Give the authority's certificate as --cacert PATH; --insecure switches the check off.",
    timeout: "Give it more time with --timeout, or see what holds the server up.",
    reset: "Something on the way broke the connection: try again; customers doctor looks at the way.",
    unreadable: "The reply is encoded in a way that this client can't undo; a proxy on the way may do that.",
    interrupted: "Run it again.",
  };
  const exit = reply.cause === "interrupted" ? "interrupted" : "unreachable";
  return { exit, code: reply.cause, claim, why: reply.detail, hint: reply.hint ?? hints[reply.cause] };
}

function refused({ reply }: Refused, claim: string, exit: Failure["exit"], subject: Subject): Reason {
  const problem = problemOf(reply);
  const code = textMember(problem, "code") ?? `http-${reply.status}`;
  const errors = errorTexts(problem);
  const detail = textMember(problem, "detail") ?? textMember(problem, "title");
  // What the lines below say is not said twice.
  const repeated = errors.some(({ text }) => text !== "" && detail?.includes(text));
  const reason: Reason = {
    exit,
    code,
    claim,
    why: sentence(reply, repeated ? undefined : detail, subject),
    hint: hintFor(reply, problem, subject),
    details: [...errors.map(({ line }) => line), ...diagnosisLines(problem)],
    status: reply.status,
  };
  const waitMs = serverWaitMs(reply);
  if (waitMs !== undefined) reason.waitMs = waitMs;
  const requestId = requestIdOf(reply);
  if (requestId !== undefined) reason.requestId = requestId;
  if (problem !== undefined) reason.problem = problem;
  return reason;
}

/** Only the server's own explanation is quoted: the page of a proxy is not one. */
function problemOf(reply: CompleteReply): JsonObject | undefined {
  if (!/\bjson\b/i.test(reply.fields.get("content-type") ?? "")) return undefined;
  const body = parseJsonOrUndefined(reply.text);
  return isJsonObject(body) ? body : undefined;
}

function sentence(reply: CompleteReply, said: string | undefined, subject: Subject): string {
  const { status } = reply;
  const items = subject.items ?? (subject.collection ? "customers" : undefined);
  if (isPage(reply) && isSuccess(status)) return aPage(reply);
  const reason = isNotOffered(reply, subject)
    ? NOT_OFFERED
    : items !== undefined && status === 200
      ? `the reply holds no array of ${items}`
      : (SENTENCES[status] ?? KINDS[meaningOf(status).kind][1]);
  const other = isSuccess(status) && status !== 200 && status !== 202;
  return `${other ? NO_READING : reason} (${status})${said === undefined ? "" : `: ${said}`}`;
}

function hintFor(reply: CompleteReply, problem: JsonObject | undefined, subject: Subject): string {
  const { status } = reply;
  const suggestion = fieldSuggestion(problem) ?? (status === 400 ? ownSuggestion(subject.fields) : undefined);
  if (suggestion !== undefined) return suggestion;
  if (status === 304) return MIXED_UP;
  if (status >= 300 && status < 400) {
    return `The server points to ${reply.fields.get("location") ?? "another place"}; if that is right, give it as --url (redirects are not followed: they could carry the token elsewhere).`;
  }
  if (status === 401)
    return "Check CUSTOMERS_TOKEN, --token-file or the profile's token; customers login stores a new one.";
  if (status === 403)
    return subject.fields === undefined
      ? "Use credentials that allow it."
      : "Use credentials that allow it, or ask for fewer --fields.";
  if (status === 407)
    return "Give the proxy's credentials in its address: --proxy http://USER:PASSWORD@HOST:PORT.";
  if (status === 404 && subject.url.endsWith("/customers")) {
    return "The base URL should end before /customers, which the client adds itself.";
  }
  if (isNotOffered(reply, subject) || status === 405 || status === 501) return notOfferedHint(subject.method);
  if (status === 404)
    return `Check the id, and that ${subject.url} and the credentials belong to the right tenant.`;
  if (status === 428 && subject.conditional === false)
    return "Give the entity-tag that you read: --if-match TAG.";
  if (status === 412) return "Read it again, decide again, and give the new tag.";
  if (status === 428)
    return "The client always sends If-Match: a proxy on the way drops it. Configure the proxy to keep it.";
  if (status === 429 || status === 503) {
    const asked = reply.fields.get("retry-after");
    const when = asked === undefined ? "later" : `when the server says (Retry-After: ${asked})`;
    return `Try again ${when}, or give it more time with --timeout.`;
  }
  if (status >= 500) return "Try again later; if it lasts, give the request id to those who run the server.";
  if (isSuccess(status)) return notAService(subject.url);
  if (status === 409) return "Remove what stands in the way, and run it again.";
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

/**
 * The server refused the request and does not say why: a name that is nearly a known one may be the reason.
 */
function ownSuggestion(fields: readonly string[] | undefined): string | undefined {
  for (const field of fields ?? []) {
    const near = REGISTRY.includes(field.toLowerCase()) ? undefined : nearestOf(field, REGISTRY);
    if (near !== undefined) return `Did you mean "${near}" by "${field}"?`;
  }
  return undefined;
}

function errorTexts(problem: JsonObject | undefined): { line: string; text: string }[] {
  const errors = problem?.get("errors");
  if (!isJsonArray(errors)) return [];
  return errors.filter(isJsonObject).map((error) => {
    const place = error.get("pointer");
    const text = oneLine(plainText(error.get("detail") ?? ""));
    return {
      line: oneLine(`  ${typeof place === "string" && place !== "" ? `${place}: ` : ""}${text}`),
      text,
    };
  });
}

function diagnosisLines(problem: JsonObject | undefined): string[] {
  const diagnosis = textMember(problem, "diagnosis");
  return diagnosis === undefined ? [] : [`  ${diagnosis}`];
}

function textMember(problem: JsonObject | undefined, name: string): string | undefined {
  const value = problem?.get(name);
  return typeof value === "string" && value !== "" ? oneLine(value) : undefined;
}

function textItems(value: Json | undefined): string[] {
  return isJsonArray(value) ? value.filter((item) => typeof item === "string").map(oneLine) : [];
}

/** A server must not be able to write lines of its own into a log. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s*[\r\n\u0085\u2028\u2029]+\s*/g, " ");
}
