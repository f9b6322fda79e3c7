/** A comparison or a refusal that one branch of the code alone gets wrong. */

import { type Method, RULES } from "../../exemption.ts";
import { accepting, customerOf, type Fault, has } from "../../fault.ts";
import type { Request } from "../../service/http-socket.ts";
import type { Customer } from "../../service/seams.ts";
import type { Service } from "../../service/service.ts";
import { isThere, on, refused, untagged, type When, write } from "../../turn.ts";

/** A lenient comparison that stands on one path of the code alone. */
const LENIENT: readonly (readonly [
  id: string,
  Method,
  does: string,
  when: (request: Request, service: Service) => boolean,
  wrongly: (sent: string, customer: Customer) => boolean,
])[] = [
  [
    "chunked-star-taken",
    "PUT",
    "honours * in the handler of chunked bodies",
    has("transfer-encoding", "chunked"),
    (sent) => sent === "*",
  ],
  [
    "kept-alive-weak-taken",
    "PUT",
    "compares weakly on a connection that it has answered on before",
    ({ connection }) => connection.requests > 0,
    (sent, { tag }) => sent === `W/${tag}`,
  ],
  [
    "kept-alive-list-taken",
    "DELETE",
    "splits lists on a connection that it has answered on before",
    ({ connection }) => connection.requests > 0,
    (sent, { tag }) => sent.includes(",") && sent.includes(tag),
  ],
  [
    "http-1-0-list-taken",
    "PATCH",
    "splits lists for old proxies, which speak HTTP/1.0",
    ({ version }) => version === "1.0",
    (sent, { tag }) => sent.includes(",") && sent.includes(tag),
  ],
  [
    "limited-star-taken",
    "DELETE",
    "lets one role say *",
    (request, service) => service.caller(request) === "limited",
    (sent) => sent === "*",
  ],
  [
    "capitals-weak-taken",
    "DELETE",
    "compares weakly where the id is in capitals",
    ({ path }) => /[A-F]/.test(path.slice(-36)),
    (sent, { tag }) => sent === `W/${tag}`,
  ],
  [
    "never-updated-unquoted-taken",
    "PUT",
    "compares the first tag of a customer without its quotes",
    (request, service) => customerOf(request, service)?.formerTags.length === 0,
    (sent, { tag }) => sent === tag.slice(1, -1),
  ],
];

/** 412 without the tag in one branch of the code. */
const UNTAGGED: readonly (readonly [
  id: string,
  rule: string,
  does: string,
  (sent: string, customer: Customer | undefined) => boolean,
])[] = [
  [
    "unknown-412-untagged",
    "IFM-11",
    "looks a stale tag up in its history of one version, and tells the tag of now where it is found",
    (sent, customer) => sent !== customer?.formerTags.at(-1),
  ],
  [
    "weak-412-untagged",
    "IFM-09",
    "refuses a weak tag in its parser, which knows no customer",
    (sent) => sent.startsWith("W/"),
  ],
  [
    "malformed-412-untagged",
    "IFM-10",
    "refuses a tag without quotes in its parser",
    (sent) => !/^(W\/)?"/.test(sent),
  ],
  [
    "list-412-untagged",
    "IFM-13",
    "refuses a list before it reads the customer",
    (sent) => sent.includes('",'),
  ],
];

/** The same, by what else the request says. */
const UNTAGGED_REQUESTS: readonly (readonly [id: string, rule: string, does: string, When])[] = [
  [
    "bad-body-412-untagged",
    "IFM-07",
    "refuses a stale PUT with a bad body in its validator, which knows no tag",
    ({ request, body }) => request.method === "PUT" && Object.keys(body).length === 0,
  ],
  [
    "capitals-412-untagged",
    "IFM-07",
    "looks the tag up by the id as it is spelled in the address, and finds none for one in capitals",
    ({ request }) => /[A-F]/.test(request.path.slice(-36)),
  ],
];

/** A stale or missing tag that is refused for another reason, on a way of sending that is taken with the current one. */
const EXCUSED: readonly (readonly [id: string, Method, status: 412 | 428, to: number, does: string, When])[] =
  [
    [
      "stale-put-with-query-404",
      "PUT",
      412,
      404,
      "selects the row to update by the version and the filter of the query, and takes none for a missing customer",
      ({ request }) => request.query !== "",
    ],
    [
      "chunked-patch-without-if-match-411",
      "PATCH",
      428,
      411,
      "asks for a length where If-Match is missing, since nothing is to be read then",
      ({ request }) => has("transfer-encoding", "chunked")(request),
    ],
    [
      "stale-delete-by-limited-409",
      "DELETE",
      412,
      409,
      "answers a conflict to one role in words of its own",
      ({ caller }) => caller === "limited",
    ],
  ];

export const FAULTY_BRANCH_FAULTS: Fault[] = [
  ...EXCUSED.map(
    ([id, method, from, to, does, when]): Fault => ({
      id,
      mode: "full",
      rule: RULES[method],
      does,
      plant: on(write(method, from), isThere, when).answers(refused(to, "refused")),
    }),
  ),
  ...LENIENT.map(
    ([id, method, does, when, wrongly]): Fault => ({
      id,
      mode: "full",
      rule: RULES[method],
      does,
      plant: accepting(
        (sent, customer, request, service) =>
          request.method === method && when(request, service) && wrongly(sent, customer),
      ),
    }),
  ),
  ...UNTAGGED.map(
    ([id, rule, does, of]): Fault => ({
      id,
      rule,
      does,
      plant: on((turn) => turn.reply.status === 412 && of(turn.sent ?? "", turn.customer)).answers(untagged),
    }),
  ),
  ...UNTAGGED_REQUESTS.map(
    ([id, rule, does, when]): Fault => ({
      id,
      rule,
      does,
      plant: on((turn) => turn.reply.status === 412 && when(turn)).answers(untagged),
    }),
  ),
];
