/** Whether a rule can be tried on this deployment, by this run. */

import type { Offer } from "../fixtures/deployment.ts";
import type { Customer } from "../fixtures/ground.ts";
import { CouldNotRun, NotApplicable } from "../http/outcome-signal.ts";
import { ownAsk } from "../http/wire.ts";
import type { Kit } from "../probe/kit.ts";
import type { Rule } from "../probe/rule.ts";

/** @throws NotApplicable or CouldNotRun, with the reason, when the rule can't be tried here. */
export async function meetNeeds(kit: Kit, { needs }: Rule): Promise<void> {
  const { profile, options, ground, deployment } = kit;
  const tagOf = async ({ url }: Customer) =>
    (await kit.wire.send(ownAsk("read a tag", "GET", url))).tag ?? "";
  for (const need of needs) {
    if (need === "write" && options.mode === "read-only")
      throw new CouldNotRun("it writes, and this run is --read-only");
    if (need === "hostile" && options.gentle)
      throw new CouldNotRun("it sends what looks like an attack or a flood, and this run is --gentle");
    if (need === "limited" && profile.limited === undefined)
      throw new CouldNotRun("it needs a caller who may not read some field (--limited-header)");
    if (need === "other-tenant" && profile.otherTenant === undefined)
      throw new CouldNotRun("it needs a caller of another tenant (--other-tenant-header)");
    if (need === "metrics" && profile.metrics.none)
      throw new NotApplicable("the profile says that no metrics can be reached");
    if (need === "metrics" && profile.metrics.urls.length === 0)
      throw new CouldNotRun("it needs the metrics of the service (--metrics-url)");
    if (need === "credentials" && profile.main.length === 0)
      throw new NotApplicable("no credentials are configured, so callers cannot be told apart");
    if (need === "patch") {
      const offer = await deployment.patchOffer(kit.main, () => tagOf(kit.main));
      refuse("patch", offer, profile.patch.offered);
    }
    if (need === "delete")
      refuse("delete", await deployment.deleteOffer(ground, tagOf), profile.delete.offered);
  }
  // Last: what is not offered does not apply, whether or not a customer could be made for it.
  if (needs.includes("create") && ground.cannotMake !== undefined)
    throw new CouldNotRun(`it needs a customer made for it: ${ground.cannotMake}`);
}

/** The specification shows PATCH and DELETE: where they are not there, somebody must say that this is meant. */
function refuse(method: "patch" | "delete", offer: Offer, offered: boolean | undefined): void {
  if (offer.kind === "offered") return;
  if (offer.kind === "absent" && offered === false) throw new NotApplicable(offer.why);
  const advice =
    offer.kind === "absent" ? `; if that is meant, say so in the profile: [${method}] offered = false` : "";
  throw new CouldNotRun(`${offer.why}${advice}`);
}
