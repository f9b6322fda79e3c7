/** Writes that are refused when the run begins, to be looked at again when it ends: a queue may apply them meanwhile. */
import { CouldNotRun, Disturbed, NoReply } from "../../http/outcome-signal.ts";
import { isClientError } from "../../http/status.ts";
import type { Attempt } from "../attempt.ts";
import type { RefusedEarly } from "../kit.ts";
import { ifMatch } from "../requests/if-match-forms.ts";
import { METHODS, type Method, sameFields } from "../snapshot.ts";

/** One customer a method. Where it can't be done, the rule that looks at it says so. */
export async function refuseEarly(t: Attempt): Promise<RefusedEarly[]> {
  const all: RefusedEarly[] = [];
  try {
    for (const method of METHODS) if (await offered(t, method)) all.push(...(await refuse(t, method)));
  } catch (error) {
    if (!(error instanceof CouldNotRun || error instanceof Disturbed || error instanceof NoReply))
      throw error;
  }
  return all;
}

async function offered(t: Attempt, method: Method): Promise<boolean> {
  if (method === "PUT") return true;
  return method === "PATCH" ? await t.patchOffered() : t.kit.deployment.deleteOffered !== false;
}

async function refuse(t: Attempt, method: Method): Promise<RefusedEarly[]> {
  const customer = await t.kit.ground.make();
  const { former, ...before } = await t.control("PUT", { to: customer });
  const refused: Omit<RefusedEarly, "former" | "now" | "status" | "sentAt">[] = [];
  for (const [what, lines] of [
    ["without If-Match", []],
    ["with a stale tag", ifMatch(former)],
  ] as const) {
    const { name, email } = t.kit.values.next();
    const values = method === "PUT" ? { name, email } : method === "PATCH" ? { name } : {};
    const seen = await t.sendWrite(method, customer, {
      ifMatch: lines,
      values,
      purpose: `${method} ${what}`,
    });
    if (isClientError(seen.status)) refused.push({ customer, method, what, values, seen });
  }
  // Before the tag: a job that settles the status in between is then seen to have moved both.
  const status = await t.status(customer);
  const now = await t.state(customer);
  // What is applied at once is the IFM rules' to blame.
  if (!sameFields(before, now)) return [];
  return refused.map((one) => ({ ...one, former, now, status, sentAt: performance.now() }));
}
