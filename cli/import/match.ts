/** `--match email`: which customer a row without an id means. */
import { memberNamed, plainText } from "../client/customer.ts";
import { eachPage } from "../client/pages.ts";
import type { Ports } from "../client/read-customer.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { listFailure } from "../outcome/reply-failure.ts";
import type { Row } from "./rows.ts";

export type Match =
  | { kind: "none" }
  | { kind: "one"; id: string }
  /** `everyRow`: the next row would meet the same refusal. */
  | { kind: "failed"; failure: Failure; everyRow: boolean };

/** The address of a row, by which it is matched; undefined where it has none. */
export function emailOf({ values }: Row): string | undefined {
  const email = memberNamed(values, "email")?.value;
  return typeof email === "string" && email !== "" ? email : undefined;
}

const GIVE_IDS = "Give the rows that update a customer its id, and import without --match.";

export async function matchByEmail(ports: Ports, row: Row): Promise<Match> {
  const email = emailOf(row);
  if (email === undefined) {
    return failed(failure("failure", "the row has no email to match a customer by"));
  }
  const ids: string[] = [];
  for await (const page of eachPage(() => ports, { email, fields: ["id", "email"], limit: 2 })) {
    if (page.kind !== "page") {
      const refused = listFailure(page, { url: ports.transport.url, email });
      // An import has no option of a list to leave out.
      const failure = page.kind === "unfiltered" ? { ...refused, hint: GIVE_IDS } : refused;
      return { kind: "failed", failure, everyRow: failure.exit !== "unreachable" };
    }
    for (const { value } of page.items) {
      const id = memberNamed(value, "id")?.value;
      if (id !== undefined) ids.push(plainText(id));
    }
    if (ids.length > 1) break;
  }
  const [id] = ids;
  if (id === undefined) return { kind: "none" };
  if (ids.length === 1) return { kind: "one", id };
  return failed(
    failure("failure", `several customers have the email ${email}, such as ${ids[0]} and ${ids[1]}`),
  );
}

function failed(reason: Failure): Match {
  return { kind: "failed", failure: reason, everyRow: false };
}
