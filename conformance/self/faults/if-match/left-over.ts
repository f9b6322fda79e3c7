/** IFM: what one request leaves behind and the next write is taken by. */
import { customerOf, type Fault, isRead, type Plant, withIfMatch } from "../../fault.ts";
import { headerLines, type Reply, type Request, setHeader } from "../../service/http-socket.ts";
import { isWrite } from "../../service/seams.ts";
import type { Service } from "../../service/service.ts";

type Leaves = (request: Request, reply: Reply, service: Service) => boolean;

/** The next write of the customer is carried out, whatever it carries. */
const leaving =
  (leaves: Leaves): Plant =>
  (ran) =>
  (service) => {
    const left = new Set<string>();
    return {
      async around(request, next) {
        const customer = customerOf(request, service);
        if (customer === undefined || customer.removed) return await next(request);
        if (isWrite(request) && left.delete(customer.id)) {
          if (headerLines(request, "if-match").join().trim() === customer.tag) return await next(request);
          ran();
          return await next(withIfMatch(request, customer.tag));
        }
        const reply = await next(request);
        if (leaves(request, reply, service)) left.add(customer.id);
        return reply;
      },
    };
  };

const ROWS: readonly (readonly [id: string, does: string, leaves: Leaves])[] = [
  [
    "matched-flag-of-304-left",
    "notes in the cached entity that a 304 has matched, and takes the note for the check of the next write",
    (request, { status }) => isRead(request) && status === 304,
  ],
  [
    "entity-of-refused-read-left",
    "leaves the entity in its session when a field is refused, and saves it without its version",
    (request, { status }, service) =>
      isRead(request) && status === 403 && service.caller(request) === "limited",
  ],
  [
    "filter-of-unknown-field-left",
    "leaves its query builder with no conditions when a field is unknown",
    (request, { status }) => isRead(request) && status === 400,
  ],
  [
    "scope-of-other-tenant-left",
    "keys its unit of work by customer, and a look by another tenant empties it of the version",
    (request, { status }, service) =>
      isRead(request) && status === 404 && service.caller(request) === "other",
  ],
  [
    "preflight-taken-for-check",
    "marks a customer as checked when a preflight has passed",
    (request) => request.method === "OPTIONS",
  ],
];

/** The next 412 tells no tag. */
const emptied: Plant = (ran) => (service) => {
  const empty = new Set<string>();
  return {
    async around(request, next) {
      const id = customerOf(request, service)?.id;
      const reply = await next(request);
      if (id === undefined) return reply;
      if (isRead(request)) {
        if (reply.status === 400) empty.add(id);
        else empty.delete(id);
      }
      if (reply.status !== 412 || !empty.delete(id)) return reply;
      ran();
      return setHeader(reply, "ETag", undefined);
    },
  };
};

export const LEFT_OVER_FAULTS: Fault[] = [
  ...ROWS.map(
    ([id, does, leaves]): Fault => ({
      id,
      rule: "IFM-49",
      does,
      ...(id.includes("304") ? { deployment: { conditionalReads: true } } : {}),
      plant: leaving(leaves),
    }),
  ),
  {
    id: "412-after-refused-read-untagged",
    rule: "IFM-49",
    does: "empties its response headers when a field is unknown, and fills in no ETag before the next read",
    plant: emptied,
  },
];
