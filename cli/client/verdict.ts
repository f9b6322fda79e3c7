/** What a reply says of the write that it answers. Pure. */

import { memberNamed, parseJsonOrUndefined } from "./customer.ts";
import { type Change, looksWritten } from "./field-conflicts.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import { serverWaitMs } from "./read-retry.ts";
import type { CompleteReply, Reply } from "./reply.ts";
import { isSuccess } from "./status.ts";

export type WriteVerdict =
  | "accepted"
  | "stale" // 412
  | "gone" // 404, 410
  | "pending" // 202: not applied yet, and perhaps never (RFC 9110 §15.3.3)
  | "unknown" // no complete reply, or one that leaves open whether the write was applied
  | "busy" // 429, and 503 with Retry-After: not applied, and wanted later
  | "doubtful" // another 503, or a page with 200: hardly applied, and the tag tells
  | "not-sent"
  | "refused";

/** True where a reply with a status of success says what a service says after such a write. */
export type Confirms = (reply: CompleteReply) => boolean;

export function judgeWrite(reply: Reply, confirms: Confirms): WriteVerdict {
  if (reply.kind === "no-complete-reply") return reply.sent ? "unknown" : "not-sent";
  const { status } = reply;
  if (status === 202) return "pending";
  // A page with 200 is a form to sign on, a maintenance notice. A service that says something else than it should
  // may have queued the write: that the state is as before does not tell that it stays so.
  if (isSuccess(status)) return confirms(reply) ? "accepted" : isPage(reply) ? "doubtful" : "unknown";
  if (status === 412) return "stale";
  if (status === 404 || status === 410) return "gone";
  if (status === 429) return "busy";
  // A gateway says 503 also where it lost the reply.
  if (status === 503) return saysWhen(reply) ? "busy" : "doubtful";
  // A gateway's 502, 504 or a failing server's 500 may come after the write was applied; 501 and 505 can't.
  if (status === 408 || (status >= 500 && status !== 501 && status !== 505)) return "unknown";
  return "refused";
}

/** Nothing protects a repetition of a creation: what may have made it counts as if it had. */
export function judgeCreation(reply: Reply): WriteVerdict {
  const verdict = judgeWrite(reply, confirmsCreation);
  return verdict === "doubtful" || verdict === "pending" ? "unknown" : verdict;
}

/** Retry-After: a service that did nothing says when to come again; a gateway that lost a reply does not know. */
export function saysWhen(reply: Reply): boolean {
  return reply.kind === "complete" && serverWaitMs(reply.fields) !== undefined;
}

/** An accepted change has a new entity-tag (specification 3); without one, the body must show what was written. */
export function confirmsChange(change: Change): Confirms {
  return (reply) => {
    if (hasNoContent(reply)) return true;
    const tagged = reply.fields.has("etag");
    if (reply.text === "") return tagged;
    const body = objectIn(reply);
    return body !== undefined && (tagged || looksWritten(body, change));
  };
}

/** The specification shows no reply to a deletion (4.3). */
export function confirmsDeletion(reply: CompleteReply): boolean {
  return hasNoContent(reply) || reply.text === "" || objectIn(reply) !== undefined;
}

/** Nor one to a creation (4.4): it names or shows what it made. */
function confirmsCreation(reply: CompleteReply): boolean {
  if (reply.status === 201 || hasNoContent(reply) || reply.fields.has("location")) return true;
  const body = objectIn(reply);
  return body !== undefined && (reply.fields.has("etag") || memberNamed(body, "id") !== undefined);
}

/** What was unclear about a reply, in words that continue "no clear reply: …". */
export function unclearReply(reply: Reply): string {
  if (reply.kind === "no-complete-reply") return reply.detail;
  const { status, fields } = reply;
  if (!isSuccess(status)) return `the server answered ${status}`;
  if (status === 202) return "the server answered 202: it has taken the request, and not done it yet";
  const type = fields.get("content-type")?.split(";")[0] ?? "no body";
  return `the answer, ${status} with ${type}, is none of a customer service, perhaps a proxy's own page`;
}

/** What a proxy shows in place of the service; JSON, or nothing, is a service's own word. */
function isPage({ text }: CompleteReply): boolean {
  return text !== "" && parseJsonOrUndefined(text) === undefined;
}

function hasNoContent({ status }: CompleteReply): boolean {
  return status === 204 || status === 205;
}

function objectIn({ text }: CompleteReply): JsonObject | undefined {
  const body = parseJsonOrUndefined(text);
  return isJsonObject(body) ? body : undefined;
}
