/** Requests that a service forgets to check, although it checks ordinary ones. */

import { customerOf, type Fault, type Plant, requesting, withIfMatch } from "./fault.ts";
import { headerLines, type Request } from "./service/http-socket.ts";
import { isWrite } from "./service/seams.ts";
import type { Service } from "./service/service.ts";

export const RULES = { PUT: "IFM-23", PATCH: "IFM-36", DELETE: "IFM-46" } as const;
export type Method = keyof typeof RULES;

export type Exemption = readonly [
  id: string,
  method: Method,
  does: string,
  when: (request: Request, service: Service) => boolean,
];

export const header = (request: Request, name: string) => headerLines(request, name).join().toLowerCase();

/** Writes that do not carry the current tag, as if they did. */
export function unchecked(when: Exemption[3], change = (request: Request): Request => request): Plant {
  return requesting(
    (request, service) => {
      const at = change(request);
      const customer = customerOf(at, service);
      if (customer === undefined || customer.removed || !isWrite(at)) return false;
      return header(at, "if-match").trim() !== customer.tag.toLowerCase() && when(request, service);
    },
    (request, service) => withIfMatch(change(request), customerOf(change(request), service)?.tag),
  );
}

/** @param given in place of a quick run, and of the rule on the ways of sending this method */
export const exemptions = (
  rows: readonly Exemption[],
  given: Partial<Pick<Fault, "mode" | "rule">> = {},
): Fault[] =>
  rows.map(
    ([id, method, does, when]): Fault => ({
      id,
      rule: RULES[method],
      does,
      plant: unchecked((request, service) => request.method === method && when(request, service)),
      ...given,
    }),
  );
