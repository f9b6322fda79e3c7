/** Writes that are not checked because of their customer, or of the caller who sends them. */

import { type Exemption, exemptions, header } from "../../exemption.ts";
import { customerOf, type Fault } from "../../fault.ts";
import type { Request } from "../../service/http-socket.ts";
import type { Caller } from "../../service/seams.ts";
import type { Service } from "../../service/service.ts";

/** Sent by the caller who has made the customer. */
const madeBy = (request: Request, service: Service, owner: Caller) =>
  service.caller(request) === owner && customerOf(request, service)?.owner === owner;

const ROWS: readonly Exemption[] = [
  [
    "limited-delete-unchecked",
    "DELETE",
    "checks the DELETE of one role alone",
    (request, service) => service.caller(request) === "limited",
  ],
  [
    "never-updated-put-unchecked",
    "PUT",
    "has no version to compare before the first update of a customer",
    (request, service) => customerOf(request, service)?.formerTags.length === 0,
  ],
  ...(["PUT", "PATCH"] as const).map(
    (method): Exemption => [
      `limited-${method.toLowerCase()}-unchecked`,
      method,
      `checks the ${method} of one role alone`,
      (request, service) => service.caller(request) === "limited",
    ],
  ),
  [
    "first-put-of-limited-unchecked",
    "PUT",
    "reads the version of what one role writes from a history that is empty at first",
    (request, service) =>
      service.caller(request) === "limited" && customerOf(request, service)?.formerTags.length === 0,
  ],
  ...(["PATCH", "DELETE"] as const).map(
    (method): Exemption => [
      `never-updated-${method.toLowerCase()}-unchecked`,
      method,
      `has no version to compare on the ${method} of a customer that was never updated`,
      (request, service) => customerOf(request, service)?.formerTags.length === 0,
    ],
  ),
];

/** What a short run does not ask. */
const SELDOM_ASKED: readonly Exemption[] = [
  [
    "owner-put-unchecked",
    "PUT",
    "lets a user write what he has made himself, and compares what an administrator has",
    (request, service) => madeBy(request, service, "limited"),
  ],
  [
    "new-tenant-patch-unchecked",
    "PATCH",
    "has left one tenant on the allowance of its migration, by which If-Match may be missing",
    (request, service) => header(request, "if-match").trim() === "" && madeBy(request, service, "other"),
  ],
  [
    "owner-delete-unchecked",
    "DELETE",
    "lets a user delete what he has made himself, whatever has become of it",
    (request, service) => madeBy(request, service, "limited"),
  ],
];

const OFTEN_WRITTEN: readonly Exemption[] = [
  [
    "often-written-delete-unchecked",
    "DELETE",
    "keeps the last twelve versions of a customer, and finds no first one to compare beyond them",
    (request, service) =>
      header(request, "if-match").trim() === "" &&
      (customerOf(request, service)?.formerTags.length ?? 0) > 12,
  ],
];

export const EXEMPT_CUSTOMER_FAULTS: Fault[] = [
  ...exemptions(ROWS),
  ...exemptions(SELDOM_ASKED, { mode: "full" }),
  ...exemptions(OFTEN_WRITTEN, { mode: "full", rule: "IFM-47" }),
];
