/** Ways of asking for a read on which it may take another path through the service than the plain one. */

import type { Field } from "../../target/profile-file.ts";
import type { Shape, Trial } from "../trial.ts";
import { CLAIMS, FROM_BROWSERS, fromProxies, gentleLines, poses } from "./usual-headers.ts";

export type WayOfReading = readonly [how: string, shape: Pick<Shape, "headers" | "framing" | "sentAs">];

/** No customer has stayed as it is since then, not even by a clock that is years behind. */
export const LONG_AGO = "Sun, 06 Nov 1994 08:49:37 GMT";

/** A condition never comes before a refusal: it is looked at where the answer would be a 2xx (RFC 9110 13.2.1). */
export const conditional = (tag: string): readonly WayOfReading[] => [
  ["with the current tag in If-None-Match", { headers: [["If-None-Match", tag]] }],
  ["with another tag in If-None-Match", { headers: [["If-None-Match", '"kit-other"']] }],
  ["with If-Modified-Since", { headers: [["If-Modified-Since", new Date().toUTCString()]] }],
];

/** Other media types than JSON: another piece of code may write the answer. */
export const OTHER_MEDIA_TYPES: readonly WayOfReading[] = [
  "text/html",
  "application/xml",
  "text/csv",
  "application/hal+json",
].map((type) => [`with Accept: ${type}`, { headers: [["Accept", type]] }]);

const accepting = (coding: string): WayOfReading => [
  `with Accept-Encoding: ${coding}`,
  { headers: [["Accept-Encoding", coding]] },
];
export const BROTLI = accepting("br");
export const COMPRESSED: readonly WayOfReading[] = [accepting("gzip"), BROTLI];

export const OTHER_TRANSFERS: readonly WayOfReading[] = [
  ...COMPRESSED,
  ["with Range: bytes=0-", { headers: [["Range", "bytes=0-"]] }],
  ["with the whole URL in the request line", { framing: "absolute-form" }],
];

/** It holds. The specification knows no condition on reads. */
export const withIfMatch = (tag: string): WayOfReading => [
  "with the current tag in If-Match",
  { headers: [["If-Match", tag]] },
];

/** Another version of HTTP and another language: neither has a say in what is shown. */
export const OTHER_WAYS: readonly WayOfReading[] = [
  ["over HTTP/1.0", { framing: "http/1.0" }],
  ["with Accept-Language: de-CH", { headers: [["Accept-Language", "de-CH"]] }],
];

/** What stands in most requests: of clients that want no copy, and of browsers. */
export const USUAL_HEADERS: readonly WayOfReading[] = [
  ["with Cache-Control: no-cache", { headers: [["Cache-Control", "no-cache"]] }],
  ["with headers of a browser", { headers: FROM_BROWSERS }],
];

/** Those of proxies too, which a deployment may refuse from elsewhere. */
export const usualHeaders = (t: Trial): readonly WayOfReading[] => [
  ...USUAL_HEADERS,
  ["with headers of proxies", { headers: gentleLines(t, fromProxies(new URL(t.kit.main.url))) }],
];

/** Those that neither a condition, another method nor a claim makes another request. */
export const otherWays = (t: Trial): readonly WayOfReading[] => [
  ...OTHER_MEDIA_TYPES,
  ...OTHER_TRANSFERS,
  ...OTHER_WAYS,
  ...usualHeaders(t),
];

/** Role and tenant come from the credentials, whatever else a request says. */
export const claims = (t: Trial, query: string): readonly WayOfReading[] => {
  if (!poses(t)) return [];
  const { pathname } = new URL(t.kit.main.url);
  const elsewhere = ["X-Original-URL", "X-Rewrite-URL"].map((name) => [name, pathname + query] as const);
  return [
    ["with headers that name a role", { headers: CLAIMS }],
    ["with X-Original-URL and X-Rewrite-URL", { headers: elsewhere }],
  ];
};

/** Methods that the specification does not name: any status will do. A run that only reads sends none of them. */
export const otherMethods = ({ kit }: Trial): readonly WayOfReading[] =>
  kit.options.mode === "read-only"
    ? []
    : [
        ...["HEAD", "OPTIONS", "POST"].map((sentAs): WayOfReading => ["", { sentAs }]),
        [
          "with X-HTTP-Method-Override: GET",
          { sentAs: "POST", headers: [["X-HTTP-Method-Override", "GET"]] },
        ],
      ];

/** More names than most maximums of 8.1 allow. */
export const manyTimes = (field: Field) => `?fields=${Array.from({ length: 100 }, () => field).join(",")}`;

/** The specification does not know it. */
export const UNKNOWN_PARAMETER = "kit=1";

/** Parameters that frameworks, and tools for debugging, have made known. */
export const usualParameters = (t: Trial): readonly string[] => [
  ...(poses(t)
    ? [
        "debug=true&verbose=true&full=true&admin=true&role=admin&internal=true",
        "tenant=*&tenantId=*&allTenants=true",
      ]
    : []),
  "pretty=true",
  "callback=kit",
  "format=csv",
];
