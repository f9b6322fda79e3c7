/** Writes that are not checked because of their connection: its version, its age, or what it carried before. */

import { type Exemption, exemptions, header } from "../../exemption.ts";
import type { Fault } from "../../fault.ts";
import { headerLines } from "../../service/http-socket.ts";

const ROWS: readonly Exemption[] = [
  [
    "connection-that-wrote-unchecked",
    "PUT",
    "keeps a flag of the last check in an object of the connection, and never resets it",
    (request) => request.connection.wrote.has(request.path),
  ],
  [
    "second-request-unchecked",
    "PATCH",
    "parses the headers of the first request of a connection alone",
    ({ connection }) => connection.requests > 0,
  ],
  [
    "http-1-0-unchecked",
    "DELETE",
    "takes HTTP/1.0 for its own health checker",
    ({ version }) => version === "1.0",
  ],
  [
    "third-request-unchecked",
    "PUT",
    "resets its flag of a checked connection after two requests",
    ({ connection }) => connection.requests > 1,
  ],
  [
    "tenth-request-unchecked",
    "PUT",
    "checks the first nine requests of a connection, and takes what lives longer for its own pool",
    ({ connection }) => connection.requests >= 9,
  ],
  [
    "after-100-continue-unchecked",
    "DELETE",
    "keeps the connection in another state after 100 Continue, in which no filter runs",
    (request) => request.connection.continued && headerLines(request, "expect").length === 0,
  ],
];

/** What a short run does not ask. */
const SELDOM_ASKED: readonly Exemption[] = [
  [
    "delete-after-a-conflict-unchecked",
    "DELETE",
    "shows a conflict once, and takes what comes without a tag after it for consent",
    (request) => header(request, "if-match").trim() === "" && request.connection.conflicts.has(request.path),
  ],
];

export const EXEMPT_CONNECTION_FAULTS: Fault[] = [
  ...exemptions(ROWS),
  ...exemptions(SELDOM_ASKED, { mode: "full" }),
];
