/** AUT: requests without credentials, or with wrong ones. */

import { accepted, isClientError } from "../../http/status.ts";
import type { Attempt } from "../../probe/attempt.ts";
import { headTellsNoTag, mustHideValues } from "../../probe/callers/disclosure.ts";
import {
  asSent,
  STRANGERS_FORMS,
  strangersTarget,
  waysOfWriting,
} from "../../probe/callers/strangers-writes.ts";
import { CURRENT } from "../../probe/requests/if-match-forms.ts";
import { otherPathsOf, pathEnd } from "../../probe/requests/other-paths.ts";
import { type Rule, rule } from "../../probe/rule.ts";

/** Callers whom the service does not know. */
const unknownCallers = (t: Attempt) =>
  UNKNOWN.filter(([caller]) => caller !== "lengthened" || t.kit.wire.hasLengthened);
const UNKNOWN = [
  ["anonymous", "without credentials"],
  ["garbled", "with a credential that nobody has"],
  ["lengthened", "with the credential and -kit after it"],
] as const;
const UNKNOWN_READING =
  "A request without credentials that the service knows has neither role nor tenant. The mechanism is open, hence a warning, unless credentials are seen to decide: the other tenant or the limited caller is refused what comes without any.";

/** Whether the policy is seen to gate this customer by credentials (5.2): then leaving them out, or making them up, bypasses it. */
async function isGated(t: Attempt): Promise<boolean> {
  const { otherTenant, limited } = t.kit.profile;
  const refused = async (caller: "other-tenant" | "limited") => {
    const purpose = `control request: what the ${caller} caller is refused`;
    const { status } = await t.get(t.kit.main, { caller, query: "?fields=name,email", purpose });
    return isClientError(status) && status !== 429;
  };
  return (
    (otherTenant !== undefined && (await refused("other-tenant"))) ||
    (limited !== undefined && (await refused("limited")))
  );
}

export const credentials: readonly Rule[] = [
  rule("AUT-12", "Nothing personal is read without credentials, or with wrong ones", {
    spec: ["5.2"],
    reading: UNKNOWN_READING,
    hurts: "Personal data reaches someone who may not see it.",
    needs: ["credentials"],
    async check(t) {
      const main = await t.state(t.kit.main, "control request: the main caller");
      const bare = t.kit.main;
      const level = (await isGated(t)) ? "MUST" : "SHOULD";
      for (const [to, query] of [
        [bare, ""],
        [bare, "?fields=email"],
        [bare, "?fields=name"],
        ...otherPathsOf(t).map((each) => [each, ""] as const),
      ] as const) {
        for (const [caller, how] of unknownCallers(t)) {
          if (caller === "lengthened" && to !== bare) continue;
          const what = `GET ${to === bare ? "" : pathEnd(to)}${query} ${how}`;
          const read = await t.read(query, "no personal data", { to, caller, what, body: false });
          mustHideValues(read, read.seen, main, what, { level });
          if (to === bare && query === "" && caller === "anonymous" && !accepted(read.seen.status))
            await headTellsNoTag(t, caller, "a caller without credentials", main.tag);
        }
      }
    },
  }),
  rule("AUT-13", "Nothing is written without credentials, or with wrong ones", {
    spec: ["5.2"],
    reading: UNKNOWN_READING,
    hurts: "Anyone who knows an address overwrites or deletes the customer.",
    needs: ["credentials", "write"],
    after: ["IFM-01"],
    async check(t) {
      await t.control("PUT");
      const level = (await isGated(t)) ? "MUST" : "SHOULD";
      for (const way of await waysOfWriting(t)) {
        let at = await strangersTarget(t);
        for (const [caller, how] of unknownCallers(t))
          for (const derive of caller === "lengthened" ? [CURRENT] : STRANGERS_FORMS) {
            const sent = derive(at.now.tag, at.former, at.customer);
            if (sent === undefined) continue;
            const write = await t.write(way.method, {
              ...asSent(sent, way),
              caller,
              to: at.customer,
              before: at.now,
              what: `${sent.what}, ${how}`,
              allowed: "refused, and nothing changed",
            });
            write.mustNotChange({ level });
            if (write.unchanged && write.after !== undefined) at.now = write.after;
            else at = await strangersTarget(t);
          }
      }
    },
  }),
];
