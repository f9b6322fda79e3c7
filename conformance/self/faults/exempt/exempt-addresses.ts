/** Writes that are not checked because of their address, or of the method that stands for theirs. */

import { type Exemption, exemptions, header, type Method, RULES, unchecked } from "../../exemption.ts";
import type { Fault } from "../../fault.ts";
import type { Request } from "../../service/http-socket.ts";

const METHODS = ["PUT", "PATCH", "DELETE"] as const;

const ROWS: readonly Exemption[] = [
  [
    "forced-delete-unchecked",
    "DELETE",
    "skips the check where the query says force=true",
    ({ query }) => /(^|&)force=(true|1)/.test(query),
  ],
  [
    "upserting-put-unchecked",
    "PUT",
    "creates or replaces without a check where the query says upsert=true",
    ({ query }) => /(^|&)upsert=(true|1)/.test(query),
  ],
  [
    "whole-url-unchecked",
    "PATCH",
    "matches its rules on the request line, and misses one with the whole URL",
    ({ target }) => target.startsWith("http"),
  ],
  [
    "bare-question-mark-unchecked",
    "PUT",
    "matches its rules on the address to its end, and misses one with a bare question mark",
    ({ target }) => target.endsWith("?"),
  ],
  ...METHODS.map(
    (method): Exemption => [
      `${method.toLowerCase()}-in-capitals-unchecked`,
      method,
      `guards the address as given out: a ${method} with the id in capitals is not checked`,
      ({ path }) => /[A-F]/.test(path.slice(-36)),
    ],
  ),
];

/** A router that takes other addresses, or other methods, for the one that it checks. */
const ALIASES: readonly (readonly [id: string, Method, does: string, (request: Request) => Request])[] = [
  [
    "capital-path-unchecked",
    "PUT",
    "routes without regard to case, and checks by a pattern with regard to it",
    (request) => ({ ...request, path: request.path.replace("/Customers/", "/customers/") }),
  ],
  [
    "dot-segment-unchecked",
    "PUT",
    "removes dot segments of the path behind its check",
    (request) => ({ ...request, path: request.path.replace("/./", "/") }),
  ],
  [
    "trailing-slash-unchecked",
    "DELETE",
    "routes with or without a slash at the end, and checks without one",
    (request) => ({ ...request, path: request.path.replace(/\/$/, "") }),
  ],
  ...(["PUT", "PATCH", "DELETE"] as const).map(
    (method) =>
      [
        `override-${method.toLowerCase()}-unchecked`,
        method,
        `takes POST with X-HTTP-Method-Override: ${method} for ${method}, behind its check`,
        (request: Request) =>
          header(request, "x-http-method-override").trim() === method.toLowerCase() &&
          request.method === "POST"
            ? { ...request, method }
            : request,
      ] as const,
  ),
];

const UNAPPLIED = (request: Request, changed: Request) =>
  changed.path !== request.path || changed.method !== request.method;

export const EXEMPT_ADDRESS_FAULTS: Fault[] = [
  ...exemptions(ROWS),
  ...ALIASES.map(
    ([id, method, does, change]): Fault => ({
      id,
      rule: RULES[method],
      does,
      plant: unchecked(
        (request) => UNAPPLIED(request, change(request)) && change(request).method === method,
        change,
      ),
    }),
  ),
];
