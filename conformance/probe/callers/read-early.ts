/**
 * Reads of a customer that nobody writes, to be asked again when the run ends: what limits them may be forgotten meanwhile.
 */
import { CouldNotRun, Disturbed, NoReply } from "../../http/outcome-signal.ts";
import { isClientError } from "../../http/status.ts";
import { FIELDS } from "../../target/profile-file.ts";
import type { Attempt } from "../attempt.ts";
import type { Kit, ReadEarly } from "../kit.ts";
import type { Shape } from "../trial.ts";
import { saysNothing } from "../weather.ts";

/** What each caller may be refused, or is shown a part of. */
function reads({ kit }: Attempt): Omit<ReadEarly, "seen">[] {
  const { limited, otherTenant, main } = kit.profile;
  return [
    { what: "GET ?fields=kitunknown", query: "?fields=kitunknown", caller: "main" },
    { what: "GET ?fields=name", query: "?fields=name", caller: "main" },
    ...(limited === undefined
      ? []
      : ["", ...FIELDS.map((field) => `?fields=${field}`)].map(
          (query) => ({ what: `GET ${query} by the limited caller`, query, caller: "limited" }) as const,
        )),
    ...(otherTenant === undefined
      ? []
      : [{ what: "GET by another tenant", query: "", caller: "other-tenant" } as const]),
    ...(main.length === 0
      ? []
      : [{ what: "GET without credentials", query: "", caller: "anonymous" } as const]),
  ];
}

export async function readEarly(t: Attempt): Promise<Pick<Kit, "readEarly" | "untouched">> {
  const readEarly: ReadEarly[] = [];
  try {
    const customer = await t.kit.ground.make();
    const { tag } = await t.state(customer, "read when the run begins");
    for (const one of reads(t)) {
      const read = (shape: Shape) => t.get(customer, { ...shape, purpose: "read when the run begins" });
      const seen = await read(one);
      if (saysNothing(seen, one.caller)) continue;
      // A gateway may refuse a request now and then; the policy does so each time.
      if (isClientError(seen.status)) {
        const [plain, again] = [await read({}), await read(one)];
        if (plain.status !== 200 || again.status !== seen.status) continue;
      }
      readEarly.push({ ...one, seen });
    }
    return { readEarly, untouched: { customer, tag, sentAt: performance.now() } };
  } catch (error) {
    if (!(error instanceof CouldNotRun || error instanceof Disturbed || error instanceof NoReply))
      throw error;
    return { readEarly: [] };
  }
}
