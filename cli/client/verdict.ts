/** What a reply says of the write that it answers. Pure. */
import { memberNamed, parseJsonOrUndefined } from "./customer.ts";
import { type Change, looksWritten } from "./field-conflicts.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import type { CompleteReply, Reply } from "./reply.ts";
import { isSuccess, meaningOf, type WriteMeaning } from "./status.ts";

export type WriteVerdict =
  | WriteMeaning
  /** No byte of it left. */
  | "not-sent";

/** True where a reply with a status of success says what a service says after such a write. */
export type Confirms = (reply: CompleteReply) => boolean;

export function judgeWrite(reply: Reply, confirms: Confirms): WriteVerdict {
  if (reply.kind === "no-complete-reply") return reply.sent ? "may-arrive" : "not-sent";
  const { write } = meaningOf(reply.status);
  if (write !== "accepted" || confirms(reply)) return write;
  // A page with 200 is a form to sign on, a maintenance notice. A service that says something else than it should
  // may have queued the write: that the state is as before does not tell that it stays so.
  return isPage(reply) ? "reading-settles" : "may-arrive";
}

/** Nothing protects a repetition of a creation, and no reading shows what became of it. */
export function judgeCreation(reply: Reply): WriteVerdict {
  const verdict = judgeWrite(reply, confirmsCreation);
  return verdict === "reading-settles" ? "may-arrive" : verdict;
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
