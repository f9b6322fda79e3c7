/**
 * What a program does with the library; run by its tests in Bun, in Node and in a browser. It imports types
 * alone.
 */
import type { Customers } from "../../client/customers.ts";

/** @param isCustomersError the library's own class, as the runtime loaded it. */
export async function scenario(
  customers: Customers,
  failureOf: (error: unknown) => { kind: string } | undefined,
): Promise<Record<string, unknown>> {
  const kindOf = async (call: Promise<unknown>): Promise<string> => {
    try {
      await call;
      return "no failure";
    } catch (error) {
      const failure = failureOf(error);
      if (failure === undefined) throw error;
      return failure.kind;
    }
  };
  const { id = "", tag = "" } = await customers.create({ name: "Ada", email: "ada@example.com" });
  const first = await customers.get(id, { fields: ["name", "status"] });
  const updated = await customers.update(id, { status: "closed" });
  const replaced = await customers.update(id, { name: "Eve", email: "eve@example.com" });
  const stale = kindOf(customers.update(id, { name: "Late" }, { ifMatch: tag }));
  const writers = await Promise.all(
    ["One", "Two", "Three", "Four"].map((name) => customers.update(id, { name }, { onConflict: "reapply" })),
  );
  const claims = await Promise.all(
    [1, 2, 3].map((at) =>
      kindOf(
        customers.update(id, { status: "active", name: `Claim ${at}` }, { expect: { status: "closed" } }),
      ),
    ),
  );
  const listed: unknown[] = [];
  for await (const customer of customers.list({ pageSize: 1 })) listed.push(customer.data.id);
  const current = await customers.get(id);
  const interrupted = new AbortController();
  interrupted.abort();
  return {
    first: first.data,
    updated: [updated.kind, updated.customer?.data["status"] ?? updated.customer?.data.name],
    replaced: replaced.customer?.data.name,
    stale: await stale,
    writers: writers.map(({ kind }) => kind),
    claims: claims.toSorted(),
    listed: listed.length,
    unchanged: await customers.getIfChanged(id, current.etag ?? ""),
    invalid: await kindOf(customers.update(id, { name: "" })),
    interrupted: await kindOf(customers.get(id, { signal: interrupted.signal })),
    deleted: (await customers.delete(id)).kind,
    gone: await kindOf(customers.get(id)),
  };
}

export const EXPECTED = {
  first: { name: "Ada", status: "active" },
  updated: ["written", "Ada"],
  replaced: "Eve",
  stale: "conflict",
  writers: ["written", "written", "written", "written"],
  claims: ["expectation", "expectation", "no failure"],
  listed: 1,
  unchanged: undefined,
  invalid: "invalid",
  interrupted: "interrupted",
  deleted: "written",
  gone: "not-found",
};
