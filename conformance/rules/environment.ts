/** ENV: what lies between the kit and the service. */
import type { RuleText } from "./legacy.ts";

export const env = [
  {
    id: "ENV-01",
    title: "The ETag is the same whatever encoding is accepted",
    level: "MUST",
    section: "2.4.2, 2.4.5",
    rule: "With gzip, br, deflate or zstd accepted a read carries the same strong token, byte for byte, as with none.",
    impact: "Browsers and most libraries accept gzip: they get a tag that their writes cannot use.",
    needs: [],
  },
  {
    id: "ENV-02",
    title: "A client that accepts gzip can write with the tag that it read",
    level: "MUST",
    section: "1.3, 4.2",
    rule: "The token as it came to a client that accepts compression is the current token, and its write is accepted; the answer to that write carries the new one, byte for byte.",
    impact: "Every write of an ordinary client is refused as stale, for ever.",
    needs: ["write"],
  },
  {
    id: "ENV-03",
    title: "The ETag of a 412 survives compression",
    level: "MUST",
    section: "4.2, 7",
    rule: "With gzip accepted, a 412 carries the current token byte for byte.",
    impact: "A client that retries with the tag of the refusal is refused for ever.",
    needs: ["write"],
  },
  {
    id: "ENV-04",
    title: "A read after a write shows that write",
    level: "MUST",
    section: "3, 4.1 rule 8",
    rule: "After an accepted PUT or PATCH, reads on new connections, with and without `fields`, show the new token and values: no cache or lagging copy answers with the old ones.",
    impact: "A client merges on old values, or is told for minutes that its save was lost.",
    needs: ["write"],
  },
  {
    id: "ENV-05",
    title: "No cache is told to share a customer between callers",
    level: "MUST",
    section: "4.1 rule 8",
    rule: "Responses vary by caller and tenant: where credentials are needed, none is marked fresh for shared caches unless Vary names the credentials.",
    impact: "A proxy hands one caller's customer to another.",
    needs: ["credentials"],
  },
] as const satisfies readonly RuleText[];
