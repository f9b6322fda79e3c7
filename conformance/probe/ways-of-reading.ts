/** Ways of asking for a read on which it may take another path through the service than the plain one. */

import type { Field } from "../target/profile-file.ts";
import type { Shape, Trial } from "./trial.ts";

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
export const OTHER_MEDIA_TYPES: readonly WayOfReading[] = ["text/html", "application/xml", "text/csv"].map(
  (type) => [`with Accept: ${type}`, { headers: [["Accept", type]] }],
);

export const OTHER_TRANSFERS: readonly WayOfReading[] = [
  ["with Accept-Encoding: gzip", { headers: [["Accept-Encoding", "gzip"]] }],
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

/** Methods that the specification does not name: any status will do. A run that only reads sends none of them. */
export const otherMethods = ({ kit }: Trial): readonly WayOfReading[] =>
  kit.options.mode === "read-only" ? [] : ["HEAD", "OPTIONS", "POST"].map((sentAs) => ["", { sentAs }]);

/** More names than most maximums of 8.1 allow. */
export const manyTimes = (field: Field) => `?fields=${Array.from({ length: 100 }, () => field).join(",")}`;

/** The specification does not know it. */
export const UNKNOWN_PARAMETER = "kit=1";
