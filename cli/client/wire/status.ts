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
type ReadMeaning = "final" | "again" | "when-asked";

type StatusMeaning = {
  kind: RefusalKind;
  read: ReadMeaning;
  write: WriteMeaning;
};

const MEANINGS = {
  200: row("not-a-service", "accepted"),
  201: row("not-a-service", "accepted"),
  204: row("not-a-service", "accepted"),
  400: row("invalid"),
  401: row("unauthenticated"),
  403: row("forbidden"),
  404: row("not-found", "gone"),
  405: row("not-offered"),
  407: row("proxy-credentials"),
  // A server gave up waiting for the request, or a gateway for the server.
  408: row("unexpected", "may-arrive"),
  409: row("unexpected"),
  410: row("not-found", "gone"),
  411: row("unexpected"),
  412: row("stale", "stale"),
  413: row("unexpected"),
  414: row("unexpected"),
  415: row("unexpected"),
  417: row("unexpected"),
  421: row("unexpected"),
  422: row("invalid"),
  423: row("unexpected"),
  425: row("unexpected"),
  428: row("precondition-required"),
  429: row("busy", "busy", "when-asked"),
  431: row("unexpected"),
  451: row("unexpected"),
  501: row("not-offered", "reading-settles"),
  // A gateway says 503 also where it lost the reply of a server that did apply the write.
  503: row("unavailable", "reading-settles", "when-asked"),
  505: row("server-error", "reading-settles"),
  // By the first digit, where the code itself says nothing more.
  // 202 is taken and not done yet; 207 says nothing of this write alone.
  2: row("not-a-service", "may-arrive"),
  // A server may answer a write that it has applied by naming the place of the result (RFC 9110 §15.4.3,
  // §15.4.4), and no service answers a write by any other of these.
  3: row("redirected", "reading-settles"),
  // No service refuses a write by any other of these; something on the way may, such as nginx by 499.
  4: row("unexpected", "reading-settles"),
  // A gateway's 502 or 504, and a server's 500, may come after the write was applied.
  5: row("server-error", "may-arrive", "again"),
} as const satisfies Record<number, StatusMeaning>;

export function meaningOf(status: number): StatusMeaning {
  const meanings: Record<number, StatusMeaning> = MEANINGS;
  // A status that no class has counts as one of 500 (RFC 9110 §15).
  return meanings[status] ?? meanings[Math.floor(status / 100)] ?? MEANINGS[5];
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** True where the next write would be answered so too: it is redirected, or not offered. */
export function isLasting(status: number): boolean {
  const { kind } = meaningOf(status);
  return kind === "redirected" || kind === "not-offered" || status === 505;
}

function row(kind: RefusalKind, write: WriteMeaning = "refused", read: ReadMeaning = "final"): StatusMeaning {
  return { kind, read, write };
}
