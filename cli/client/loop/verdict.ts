/** What a reply says of the write that it answers. Pure. */
import { idOfAnother, memberNamed, parseJsonOrUndefined } from "../customer.ts";
import { isJsonObject, type JsonObject } from "../json.ts";
import { parseEntityTag } from "../wire/entity-tag.ts";
import type { CompleteReply, Reply } from "../wire/reply.ts";
import { meaningOf, type WriteMeaning } from "../wire/status.ts";
import { type Change, looksWritten, showsNoOtherText } from "./field-conflicts.ts";

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
  // A page with 200 is a form to sign on, a maintenance notice. A service that says something else than it
  // should may have queued the write: an unchanged state does not show that it stays unchanged.
  return isPage(reply) ? "reading-settles" : "may-arrive";
}

/**
 * Nothing protects a repetition of a creation, and no reading shows what became of it.
 * @param sent the members of the request.
 */
export function judgeCreation(reply: Reply, sent: JsonObject): WriteVerdict {
  const verdict = judgeWrite(reply, confirmsCreation(sent));
  // A copy of this request, made on the way, is still in work under its key.
  const hasCopy = reply.kind === "complete" && reply.status === 409 && isAboutKey(reply);
  return verdict === "reading-settles" || hasCopy ? "may-arrive" : verdict;
}

/**
 * True where a service refused the values themselves, so that an earlier sending of the same values under the
 * same key was refused too. Any other refusal may follow a creation that was applied: credentials are withdrawn,
 * a proxy refuses, the key is known already.
 */
export function refusesValues(reply: CompleteReply): boolean {
  const { status, fields } = reply;
  const speaks = /\bjson\b/i.test(fields.get("content-type") ?? "") && !isPage(reply);
  return (status === 400 || status === 422) && speaks && !isAboutKey(reply);
}

function isAboutKey({ text }: CompleteReply): boolean {
  return /idempoten/i.test(text);
}

/**
 * An accepted change has a new entity-tag (specification 3). A body must show the customer: a note such as
 * `{"error":"not now"}` may have a tag too, an echo shows what was sent, and another value is not what was written.
 */
export function confirmsChange(id: string, change: Change): Confirms {
  return (reply) => {
    if (reply.text === "") return reply.status === 204 || isTagged(reply);
    const body = bodyAbout(reply, id);
    if (body === undefined || memberNamed(body, "id") === undefined) return false;
    return (isTagged(reply) && showsNoOtherText(body, change)) || looksWritten(body, change);
  };
}

/** The specification shows no reply to a deletion (4.3), so no body can confirm one. */
export const confirmsDeletion: Confirms = ({ text }) => text === "";

/** A success that says too little by itself: the next reading confirms it, or does not. */
export function mayBeConfirmed(reply: CompleteReply, id: string): boolean {
  return (
    meaningOf(reply.status).write === "accepted" && (reply.text === "" || bodyAbout(reply, id) !== undefined)
  );
}

/** Nor one to a creation (4.4): it names or shows what it made, and nothing that was not sent. */
function confirmsCreation(sent: JsonObject): Confirms {
  return (reply) => {
    const named = reply.status !== 200 || reply.fields.has("location");
    if (reply.text === "") return named;
    const body = objectIn(reply);
    // What is replayed may have been changed since it was created.
    return (
      body !== undefined &&
      (named || memberNamed(body, "id") !== undefined) &&
      (isReplayed(reply) || showsNoOtherText(body, sent))
    );
  };
}

/** It was created earlier, under the same idempotency key. */
export function isReplayed({ fields }: CompleteReply): boolean {
  return fields.get("idempotency-replayed") === "true";
}

/** A weak tag is no version (specification 2.4): web frameworks put one on every body, an error's too. */
function isTagged({ fields }: CompleteReply): boolean {
  return parseEntityTag(fields.get("etag")).kind === "strong";
}

/** What a proxy shows in place of the service; JSON, or nothing, is a service's own word. */
function isPage({ text }: CompleteReply): boolean {
  return text !== "" && parseJsonOrUndefined(text) === undefined;
}

/** The body, unless it is another customer's. */
function bodyAbout(reply: CompleteReply, id: string): JsonObject | undefined {
  const body = objectIn(reply);
  return body && idOfAnother(body, id) === undefined ? body : undefined;
}

/** Undefined for problem details too, which some gateways send with a status of success. */
function objectIn({ text, fields }: CompleteReply): JsonObject | undefined {
  if (/^application\/problem\+json\b/i.test(fields.get("content-type") ?? "")) return undefined;
  const body = parseJsonOrUndefined(text);
  return isJsonObject(body) ? body : undefined;
}
