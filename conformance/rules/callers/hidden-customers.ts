/** AUT: bodies that would hide a customer from its owner. */

import { isClientError } from "../../http/status.ts";
import { type Rule, rule } from "../../probe/rule.ts";

/** What hides a customer from its owner, as it is called in bodies; a binder of objects takes whichever it knows. */
const HIDING: readonly (readonly [names: readonly string[], value: () => unknown, onPutAlone?: true])[] = [
  // A column of any type but a number takes it.
  [["tenant", "Tenant"], () => crypto.randomUUID()],
  [["tenantId", "TenantId", "tenant_id"], () => crypto.randomUUID()],
  // The payload of a PATCH is not shown (4.3): it may be a way to delete.
  [["deleted", "isDeleted", "IsDeleted", "is_deleted", "archived"], () => true, true],
  [["deletedAt", "DeletedAt", "deleted_at"], () => new Date().toISOString(), true],
];

export const hiddenCustomers: Rule = rule("AUT-17", "A body hides no customer from its owner", {
  spec: ["4.2 body", "3 accepted", "5.2"],
  reading:
    "A tenant in the body of a PUT or PATCH, or a mark of deletion in that of a PUT, is refused or ignored: afterwards the owner still reads the customer.",
  hurts: "A client gives a customer away to another tenant, deletes it without a DELETE, or loses it.",
  needs: ["write", "create"],
  after: ["IFM-01", "IFM-30"],
  async check(t) {
    const short = t.leavesOut("each kind of such members in a body of its own");
    let to = await t.kit.ground.make();
    for (const method of await t.updates()) {
      const control = await t.control(method, { to });
      let { tag } = control;
      const kinds = HIDING.filter(([, , onPutAlone]) => method === "PUT" || onPutAlone !== true);
      const sets = kinds.map(([names, value]) => Object.fromEntries(names.map((name) => [name, value()])));
      for (const members of short ? [Object.assign({}, ...sets)] : sets) {
        const what = `with ${Object.keys(members).join(", ")} in the body`;
        const proof = await t.writeOnly(method, to, {
          what,
          allowed: "a 4xx, or the member ignored",
          ifMatch: tag,
          members,
        });
        const after = await t.get(to, { query: t.kit.deployment.stateQuery, purpose: "read back" });
        proof.show(proof.seen, { before: control.seen, after });
        proof.control({ differs: "no such member", seen: control.written.seen });
        const gone = isClientError(after.status) && after.status !== 429;
        const found = `after ${method} ${what}, answered ${proof.seen.status}, the owner's read is answered ${after.status}`;
        proof.must("kept", !gone, found);
        if (gone) to = await t.kit.ground.make();
        tag = gone ? (await t.state(to)).tag : (after.tag ?? tag);
      }
    }
  },
});
