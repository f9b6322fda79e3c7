import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { STORAGE_WAYS } from "./support/database/storage-ways.ts";
import { RawConnection, rawRequest } from "./support/http/raw-connection.ts";
import { Workplace } from "./support/service/server-process.ts";
import { TestService } from "./support/service/test-service.ts";

const CLIENTS = 12;
const STEPS = 25;

const directory = mkdtempSync(join(tmpdir(), "customers-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** A version of the customer, as an applied write made it from the one before. */
type Version = { readonly tag: string; readonly name: string };
/** What a client learned, in order: a tag, and the name where a read returned it. */
type Sight = { readonly tag: string; readonly name: string | null };
/** A customer whose history begins, and how to reach it. */
type Ground = {
  readonly port: number;
  readonly authorization: string;
  readonly path: string;
  /** Its first tag; its first name is "first". */
  readonly first: string;
};

// Every acknowledged write is in the history, none is lost or written over,
// and nobody sees it run backwards: that is what an entity-tag promises.
// Clients race, each a request at a time, with tags that are often stale.
async function expectOneHistory({ port, authorization, path, first }: Ground): Promise<void> {
  const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
  console.log(`one history: SEED=${seed}`);
  const next = new Map<string, Version>();
  const anyPlan = fc.array(
    fc.constantFrom("read", "write", "write from memory", "lost answer", "lost connection"),
    {
      minLength: STEPS,
      maxLength: STEPS,
    },
  );
  const plans = fc.sample(anyPlan, { seed, numRuns: CLIENTS });
  const sights = await Promise.all(
    plans.map(async (plan, client) => {
      const connection = await RawConnection.open(port);
      const seen: Sight[] = [{ tag: first, name: null }];
      for (const [step, kind] of plan.entries()) {
        if (kind === "read") {
          const reply = await connection.send(rawRequest("GET", `${path}?fields=name`, [authorization]));
          expect(reply?.status).toBe(200);
          const { name } = JSON.parse(reply?.body ?? "") as { name: string };
          seen.push({ tag: reply?.headers.get("etag") ?? "", name });
          continue;
        }
        // The newest tag that it knows, or an old one.
        const at = kind === "write from memory" ? (step * 7) % seen.length : seen.length - 1;
        const ifMatch = seen[at]?.tag ?? first;
        const name = `client ${client}, step ${step}`;
        const key = `Idempotency-Key: client-${client}-step-${step}`;
        const lines = [authorization, `If-Match: ${ifMatch}`, "Content-Type: application/json", key];
        const body = Buffer.from(JSON.stringify({ name }));
        const write = rawRequest("PATCH", path, lines, body);
        // What became of it the client does not know: it sends the same again, under the same key.
        if (kind === "lost answer") await connection.send(write);
        if (kind === "lost connection") {
          const doomed = await RawConnection.open(port);
          void doomed.send(write);
          doomed.close();
        }
        const reply = await connection.send(write);
        const tag = reply?.headers.get("etag") ?? "";
        if (reply?.status === 204) {
          // No version has two that follow it.
          expect(next.has(ifMatch)).toBe(false);
          if (kind === "lost answer") expect(reply.headers.get("idempotency-replayed")).toBe("true");
          next.set(ifMatch, { tag, name });
        } else expect(reply?.status).toBe(412);
        seen.push({ tag, name: reply?.status === 204 ? name : null });
      }
      connection.close();
      return seen;
    }),
  );

  const history: Version[] = [{ tag: first, name: "first" }];
  for (let version = next.get(first); version !== undefined; version = next.get(version.tag)) {
    history.push(version);
  }
  expect(history).toHaveLength(next.size + 1);
  const connection = await RawConnection.open(port);
  const last = await connection.send(rawRequest("GET", `${path}?fields=name`, [authorization]));
  connection.close();
  expect({ tag: last?.headers.get("etag"), ...JSON.parse(last?.body ?? "") }).toEqual(history.at(-1));
  expect(history.length).toBeGreaterThan(CLIENTS);

  const place = new Map(history.map(({ tag }, index) => [tag, index]));
  for (const seen of sights) {
    let newest = 0;
    for (const { tag, name } of seen) {
      const at = place.get(tag) ?? -1;
      // Never older than what this client saw before: its own writes and its reads included.
      expect(at).toBeGreaterThanOrEqual(newest);
      if (name !== null) expect(history[at]?.name).toBe(name);
      newest = at;
    }
  }
}

test.each([...STORAGE_WAYS])("all clients of a customer see one history, $title", async ({ title, open }) => {
  const deaths: string[] = [];
  const storage = await open(join(directory, title), { onFault: (reason) => deaths.push(reason) });
  const service = await TestService.start({ storage });
  const authorization = `Authorization: Bearer ${await service.token()}`;
  const { path, etag: first } = await service.customer({ name: "first" });
  await expectOneHistory({ port: service.port, authorization, path, first });
  expect(deaths).toEqual([]);
  await service.stop();
});

test("all clients of a customer see one history, on several services that share port and database", async () => {
  const place = new Workplace();
  try {
    const service = await place.start({ services: 3 });
    const reply = await service.send(place.adminToken, "POST", "/customers?fields=id", {
      body: { name: "first", email: "first@example.com" },
    });
    await expectOneHistory({
      port: Number(new URL(service.url).port),
      authorization: `Authorization: Bearer ${place.adminToken}`,
      path: `/customers/${reply.json.id}`,
      first: reply.etag,
    });
  } finally {
    await place.clear();
  }
});
