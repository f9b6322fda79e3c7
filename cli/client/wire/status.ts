/** What an HTTP status means to this client: the one place that knows. */

/** Why a request was refused, for the closed union of failures. */
export type RefusalKind =
  | "invalid"
  | "unauthenticated"
  | "forbidden"
  | "not-found"
  | "not-offered"
  | "stale"
  | "precondition-required"
  | "proxy-credentials"
  | "busy"
  | "unavailable"
  | "server-error"
  | "redirected"
  /** A success that no customer service means: a page, a notice. */
  | "not-a-service"
  | "unexpected";

/** What the status says of a write. */
export type WriteMeaning =
  | "accepted"
  | "stale"
  | "gone"
  /** It may have been applied, or still be applied later. */
  | "may-arrive"
  /** It was hardly applied; the entity-tag of the next reading settles it. */
  | "reading-settles"
  /** Not applied, and welcome later. */
  | "busy"
  | "refused";

/** What to do with a read: it is the answer, ask again, or ask again when the server says. */
export type ReadMeaning = "final" | "again" | "when-asked";

export type StatusMeaning = {
  kind: RefusalKind;
  read: ReadMeaning;
  write: WriteMeaning;
  /** Continues "… could not be read: ". */
  sentence: string;
};

const UNEXPECTED = "the server answered with an unexpected status";
const REDIRECTED = "the server redirects to another place";
const NOT_OFFERED = "the server does not know this operation";

const MEANINGS = {
  202: row("not-a-service", "the server has taken the request, and not done it yet", "may-arrive"),
  // A server may answer a write that it has applied by naming the place of the result (RFC 9110 §15.4.3,
  // §15.4.4).
  302: row("redirected", REDIRECTED, "reading-settles"),
  303: row("redirected", REDIRECTED, "reading-settles"),
  400: row("invalid", "the server does not accept the request"),
  401: row("unauthenticated", "the server does not know the credentials"),
  403: row("forbidden", "the credentials do not allow it"),
  404: row("not-found", "it does not exist", "gone"),
  405: row("not-offered", NOT_OFFERED),
  407: row("proxy-credentials", "a proxy asks for credentials"),
  // A server gave up waiting for the request, or a gateway for the server.
  408: row("unexpected", "the server gave up waiting for the request", "may-arrive"),
  410: row("not-found", "it does not exist", "gone"),
  412: row("stale", "someone else changed it", "stale"),
  415: row("unexpected", "the server does not take this kind of body"),
  422: row("invalid", "the server does not accept the values"),
  428: row("precondition-required", "the server saw no If-Match"),
  429: row("busy", "the server asks for fewer requests", "busy", "when-asked"),
  501: row("not-offered", NOT_OFFERED),
  // A gateway says 503 also where it lost the reply of a server that did apply the write.
  503: row("unavailable", "the server does not serve now", "reading-settles", "when-asked"),
  505: row("server-error", UNEXPECTED),
  // By the first digit, where the code itself says nothing more.
  2: row("not-a-service", "the reply is no JSON object", "accepted"),
  3: row("redirected", REDIRECTED),
  4: row("unexpected", UNEXPECTED),
  // A gateway's 502 or 504, and a server's 500, may come after the write was applied.
  5: row("server-error", UNEXPECTED, "may-arrive", "again"),
} as const satisfies Record<number, StatusMeaning>;

export function meaningOf(status: number): StatusMeaning {
  const meanings: Record<number, StatusMeaning> = MEANINGS;
  // A status that no class has counts as one of 500 (RFC 9110 §15).
  return meanings[status] ?? meanings[Math.floor(status / 100)] ?? MEANINGS[5];
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function row(
  kind: RefusalKind,
  sentence: string,
  write: WriteMeaning = "refused",
  read: ReadMeaning = "final",
): StatusMeaning {
  return { kind, read, write, sentence };
}
