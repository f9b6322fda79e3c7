/** PRB: errors. */
import type { RuleText } from "./legacy.ts";

export const prb = [
  {
    id: "PRB-01",
    title: "GET of a missing customer is 404",
    level: "MUST",
    section: "4.1, 7",
    rule: "A customer that does not exist is 404, with and without `fields`.",
    impact: "Clients cannot tell an empty customer from none.",
    needs: [],
  },
  {
    id: "PRB-02",
    title: "Refusals are the same each time",
    level: "MUST",
    section: "7 rule 1",
    rule: "The outcomes are deterministic: the same bad write is answered the same way each time, 428 or 412.",
    impact: "Clients pass their tests and fail in production.",
    needs: ["write"],
  },
  {
    id: "PRB-03",
    title: "A problem document says what its status says",
    level: "SHOULD",
    section: "4.2, 7",
    rule: "Problem details are optional; where they come they are a JSON object of RFC 7807 whose status is that of the response.",
    impact: "Clients act on a document that contradicts the status line.",
    needs: ["write"],
  },
  {
    id: "PRB-04",
    title: "A problem document of 412 names a clear error code",
    level: "SHOULD",
    section: "7",
    rule: "If a 412 has a problem document, it tells this error from others: by a type, a code or the like.",
    impact: "Clients must parse prose.",
    needs: ["write"],
  },
  {
    id: "PRB-05",
    title: "No probe makes the service fail",
    level: "SHOULD",
    section: "7",
    rule: "Whatever this run sent, the service answered it without 500, 502 or 504.",
    impact: "A client's fault becomes the operator's alarm.",
    needs: [],
  },
] as const satisfies readonly RuleText[];
