/** What an answer discloses to a stranger: values of the customer, its tag, or that it exists. */

import { accepted } from "../../http/status.ts";
import type { Seen } from "../../http/wire.ts";
import type { Answered } from "../answered.ts";
import type { Attempt } from "../attempt.ts";
import type { Proof } from "../proof.ts";
import { type Snapshot, WRITABLE } from "../snapshot.ts";
import { holds } from "../token/holds.ts";
import type { Weight } from "../trial.ts";
import { inWords, tellsExistence } from "./existence.ts";

export const valuesIn = (seen: Seen, of: Snapshot) =>
  WRITABLE.filter((field) => holds(seen, of.fields[field]));

export function mustHideValues(
  proof: Proof,
  seen: Seen,
  of: Snapshot,
  what: string,
  weight: Weight = {},
): void {
  const values = valuesIn(seen, of);
  const found = `${what}, answered ${seen.status}, holds the ${values.join(" and ")}`;
  proof.must("no-values", values.length === 0, found, weight);
}

/** HEAD is GET without its body (RFC 9110 9.3.2); a check may be bound to GET alone. */
export async function headTellsNoTag(
  t: Attempt,
  caller: "other-tenant" | "anonymous",
  who: string,
  tag: string,
): Promise<void> {
  // Such a run promises to send nothing but GET.
  if (t.kit.options.mode === "read-only") return;
  const { main } = t.kit;
  const allowed = `not the tag ${tag}`;
  const proof = t.proof(`HEAD by ${who}`, allowed);
  const seen = await t.send({ purpose: "probe", caller, method: "HEAD", url: main.url, headers: [] });
  proof.show(seen);
  const found = `HEAD by ${who} was answered ${seen.status} with ${tag}`;
  proof.must("no-tag-by-head", seen.tag !== tag, found, {
    level: caller === "anonymous" ? "SHOULD" : "MUST",
  });
}

/** The answer is that to a customer that nobody has, in status, members, words and headers. */
export async function mustTellNothing(
  proof: Answered,
  id: string,
  what: string,
  ask: (to: "customer" | "nobody") => Promise<{ seen: Seen; id: string }>,
): Promise<void> {
  const { seen } = proof;
  // A failure of the service tells nothing; 403 says no more than that the caller may not.
  if (seen.status >= 500 || seen.status === 403) return;
  const { differences, nobodys } = await tellsExistence(ask, { seen, id });
  if (nobodys.status >= 500) return;
  proof.control({ differs: "nobody has the customer", seen: nobodys, refused: !accepted(nobodys.status) });
  const same = !differences.some(({ what }) => what === "the status");
  const answer = `${what} was answered ${seen.status}`;
  // Without If-Match both are 428 (4.2, order of checks).
  proof.must(
    "as-nobodys",
    same,
    `${answer}, and to a customer that nobody has ${nobodys.status}: the difference tells that it exists`,
    { level: seen.status === 428 || nobodys.status === 428 ? "MUST" : "SHOULD" },
  );
  const tells = () =>
    `${answer}, which tells that the customer exists: ${inWords(differences)} to an id that nobody has`;
  if (same) proof.should("same-words", differences.length === 0, tells);
}

/** The other tenant may be refused by the environment as well: such an answer is asked for again. */
const REFUSED_MAX = 3;

/** The first answer that is no such refusal, or the last one. */
export async function unrefused<T extends { readonly seen: Seen }>(ask: () => Promise<T>): Promise<T> {
  let answer = await ask();
  for (let again = 0; again < REFUSED_MAX && isRefusal(answer.seen); again += 1) answer = await ask();
  return answer;
}

const isRefusal = ({ status }: Seen) => status === 401 || status === 403;
