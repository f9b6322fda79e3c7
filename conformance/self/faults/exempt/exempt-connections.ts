/** Writes that are not checked because of their connection: its version, its age, or what it carried before. */

import { type Exemption, exemptions, header } from "../../exemption.ts";
import { customerOf, type Fault, type Plant } from "../../fault.ts";
import { headerLines, type Request } from "../../service/http-socket.ts";

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

/** What the session of a connection has loaded stays in it, and a write is compared with that. */
const identityMap: Plant = (ran) => (service) => {
  const sessions = new WeakMap<Request["connection"], Map<string, string>>();
  return {
    around(request, next) {
      const customer = customerOf(request, service);
      const loaded = sessions.get(request.connection) ?? new Map<string, string>();
      sessions.set(request.connection, loaded);
      if (customer !== undefined && !loaded.has(customer.id)) loaded.set(customer.id, customer.tag);
      return next(request);
    },
    isCurrent(sent, { id, tag }, { connection }) {
      const stale = sent !== tag && sessions.get(connection)?.get(id) === sent;
      if (stale) ran();
      return sent === tag || stale;
    },
  };
};

export const EXEMPT_CONNECTION_FAULTS: Fault[] = [
  {
    id: "session-keeps-the-row",
    rule: "IFM-23",
    does: "has a session of its object mapper for each connection, which compares with the row that it loaded first",
    plant: identityMap,
  },
  ...exemptions(ROWS),
  ...exemptions(SELDOM_ASKED, { mode: "full" }),
];
