import fc from "fast-check";
import { anyBody, anyCreation, anyQuery, anyTag } from "./arbitrary-requests.ts";
import type { Method } from "./customer-model.ts";

/** Tenants of one run; each run has its own, so that runs do not know of each other. */
export const TENANTS = ["acme", "globex"];
const anyCaller = fc.record({
  role: fc.constantFrom<string | null>(
    "admin",
    "admin",
    "admin",
    "clerk",
    "viewer",
    "blind",
    "monitor",
    null,
  ),
  tenant: fc.constantFrom(...TENANTS),
});
const anyTarget = fc.record({
  pick: fc.nat(),
  kind: fc.constantFrom("known", "known", "known", "known", "known", "upper case", "never made", "malformed"),
});
const NONE_MATCH: readonly { readonly line: (tag: string) => string | null }[] = [
  { line: () => null },
  { line: () => null },
  { line: () => null },
  { line: (tag) => tag },
  { line: (tag) => `W/${tag}` },
  { line: (tag) => `"other,one" ,${tag}` },
  { line: (tag) => `no tag, ${tag}` },
  { line: () => "*" },
  { line: () => '"AAAAAAAAAAAAAAAA", W/"x"' },
  { line: () => " \t" },
  { line: (tag) => tag.slice(1, -1) },
];
/** How a key is sent, and which key is meant: the quoted form and the bare one are the same. */
const anyKey = fc.constantFrom(
  null,
  null,
  { sent: "key-1", meant: "key-1" },
  { sent: '"key-1"', meant: "key-1" },
  { sent: "key-2", meant: "key-2" },
);
const onCustomer = fc.record({
  kind: fc.constant("customer" as const),
  method: fc.constantFrom<Method>("GET", "HEAD", "PUT", "PUT", "PATCH", "PATCH", "DELETE"),
  caller: anyCaller,
  target: anyTarget,
  tag: anyTag,
  query: anyQuery,
  body: anyBody,
  noneMatch: fc.constantFrom(...NONE_MATCH),
  prefers: fc.boolean(),
  key: anyKey,
});
/** The last request of a customer once more, as it was: a client whose answer was lost. */
const again = fc.record({ kind: fc.constant("again" as const) });
const onCollection = fc.record({
  kind: fc.constant("create" as const),
  caller: anyCaller,
  query: anyQuery,
  body: anyCreation,
  key: anyKey,
  hours: fc.constantFrom(0, 0, 0, 13, 25),
});
const onPages = fc.record({
  kind: fc.constant("pages" as const),
  caller: anyCaller,
  query: anyQuery,
  limit: fc.constantFrom(1, 2, 3, 500),
  status: fc.constantFrom(null, null, "active", "closed"),
  email: fc.constantFrom(null, null, "ada@example.com", 0, 1),
});
export const anyStep = fc.oneof(
  { weight: 7, arbitrary: onCustomer },
  { weight: 2, arbitrary: again },
  { weight: 2, arbitrary: onCollection },
  { weight: 1, arbitrary: onPages },
);
export type Step<Kind> = Extract<
  typeof anyStep extends fc.Arbitrary<infer Any> ? Any : never,
  { kind: Kind }
>;
