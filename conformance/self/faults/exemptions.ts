/** Requests that a service forgets to check: the precondition holds for ordinary requests and not for these. */
import { customerOf, type Fault, requesting, withIfMatch } from "../fault.ts";
import { headerLines, type Request } from "../service/http-socket.ts";
import { isWrite } from "../service/seams.ts";
import type { Service } from "../service/service.ts";

type Row = readonly [
  id: string,
  rule: string,
  does: string,
  when: (request: Request, service: Service) => boolean,
];

const header = (request: Request, name: string) => headerLines(request, name).join().toLowerCase();

const ROWS: readonly Row[] = [
  [
    "chunked-put-unchecked",
    "IFM-23",
    "checks a PUT in a filter that chunked bodies bypass",
    (request) => request.method === "PUT" && header(request, "transfer-encoding").includes("chunked"),
  ],
  [
    "charset-patch-unchecked",
    "IFM-36",
    "routes a PATCH whose media type has a parameter to an older handler without the check",
    (request) => request.method === "PATCH" && header(request, "content-type").includes("charset"),
  ],
  [
    "limited-delete-unchecked",
    "IFM-46",
    "checks the DELETE of one role alone",
    (request, service) => request.method === "DELETE" && service.caller(request) === "limited",
  ],
  [
    "never-updated-put-unchecked",
    "IFM-23",
    "has no version to compare before the first update of a customer",
    (request, service) => request.method === "PUT" && customerOf(request, service)?.formerTags.length === 0,
  ],
];

export const EXEMPTION_FAULTS: Fault[] = ROWS.map(([id, rule, does, when]) => ({
  id,
  rule,
  cause: /applied|accepted|answered 20/,
  does,
  plant: requesting(
    (request, service) => {
      const customer = customerOf(request, service);
      if (customer === undefined || customer.removed || !isWrite(request)) return false;
      return header(request, "if-match").trim() !== customer.tag.toLowerCase() && when(request, service);
    },
    (request, service) => withIfMatch(request, customerOf(request, service)?.tag),
  ),
}));
