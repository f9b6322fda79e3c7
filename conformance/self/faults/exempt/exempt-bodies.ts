/** Writes that are not checked because of their body: its length, its framing, or what it says. */

import { type Exemption, exemptions, header, type Method, RULES } from "../../exemption.ts";
import { type Fault, has, withIfMatch } from "../../fault.ts";
import type { Request } from "../../service/http-socket.ts";
import { isThere, on, type When } from "../../turn.ts";

const length = (request: Request) => Number(header(request, "content-length").trim());

const ROWS: readonly Exemption[] = [
  [
    "put-of-140000-bytes-unchecked",
    "PUT",
    "streams bodies of more than 128 KiB past the filter that checks",
    (request) => length(request) > 131_072,
  ],
  [
    "chunked-put-unchecked",
    "PUT",
    "checks a PUT in a filter that chunked bodies bypass",
    has("transfer-encoding", "chunked"),
  ],
  [
    "big-patch-unchecked",
    "PATCH",
    "streams bodies above a kilobyte past its filters",
    (request) => length(request) > 1000,
  ],
  [
    "delete-with-body-unchecked",
    "DELETE",
    "takes a DELETE with a body for a bulk job",
    (request) => length(request) > 0,
  ],
  [
    "chunked-patch-unchecked",
    "PATCH",
    "checks a PATCH in a filter that chunked bodies bypass",
    has("transfer-encoding", "chunked"),
  ],
  [
    "chunked-delete-unchecked",
    "DELETE",
    "checks a DELETE in a filter that chunked bodies bypass",
    has("transfer-encoding", "chunked"),
  ],
  [
    "huge-put-unchecked",
    "PUT",
    "spools bodies above 64 kB to disk, past its filters",
    (request) => length(request) > 65_536,
  ],
];

/** Writes that are carried out unchecked because of what their body says. */
const CONTENTS: readonly (readonly [id: string, method: Method, does: string, When, alsoRun?: string[]])[] = [
  [
    "patch-of-nothing",
    "PATCH",
    "takes {} for a PATCH that needs no precondition, and bumps the version",
    ({ body }) => Object.keys(body).length === 0,
    ["ORD-11"],
  ],
  [
    "patch-of-stored-values",
    "PATCH",
    "skips the check of a PATCH that changes nothing, and bumps the version",
    ({ body, before }) => body["Name"] === before?.name,
  ],
  [
    "patch-of-status",
    "PATCH",
    "routes a PATCH of the status alone to the code that moves it on, which has no check",
    ({ body }) => Object.keys(body).join() === "Status",
  ],
  [
    "put-of-stored-values",
    "PUT",
    "skips the check of a PUT that changes nothing, and bumps the version",
    ({ body, before }) => body["Name"] === before?.name && body["Email"] === before?.email,
  ],
  [
    "put-of-email",
    "PUT",
    "takes a PUT that keeps the name for a change of address, which needs no precondition",
    ({ body, before }) => body["Name"] === before?.name && body["Email"] !== before?.email,
  ],
  [
    "put-beyond-ascii",
    "PUT",
    "decodes a body beyond ASCII on a slower path without the check",
    ({ body }) => /[^ -~]/.test(String(body["Name"])),
  ],
  [
    "put-with-tag",
    "PUT",
    "takes a tag in the body for the precondition, and does not compare it",
    ({ body }) => "etag" in body,
  ],
];

export const EXEMPT_BODY_FAULTS: Fault[] = [
  ...exemptions(ROWS),
  ...CONTENTS.map(
    ([id, method, does, when, alsoRun = []]): Fault => ({
      id: `${id}-unchecked`,
      rule: RULES[method],
      alsoRun,
      does,
      plant: on(
        ({ request, reply }) => request.method === method && /412|428/.test(`${reply.status}`),
        isThere,
        when,
      ).answers(({ request, before, send }) => send(withIfMatch(request, before?.tag))),
    }),
  ),
];
