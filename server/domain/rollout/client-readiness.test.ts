import { describe, expect, test } from "bun:test";
import { type Enforcement, WRITE_METHODS, type WriteMethod } from "../policy/policy.ts";
import { DAY_MS } from "../text/iso-time.ts";
import { type ClientState, readinessOf } from "./client-readiness.ts";
import { planOf } from "./enforcement-plan.ts";
import { countOf, sumOf, type WriteCount, type WriteKind } from "./write-count.ts";

const NOW_MS = Date.UTC(2027, 2, 1, 12);
const observe = (clients: readonly string[] = [], methods: readonly WriteMethod[] = []): Enforcement => ({
  mode: "observe",
  untilMs: NOW_MS + 30 * DAY_MS,
  enforcedClients: new Set(clients),
  enforcedMethods: new Set(methods),
});

type Write = readonly [daysAgo: number, kind: WriteKind, method?: WriteMethod];

/** The counts of these writes, one row a day and method, as a store keeps them. */
function counts(writes: readonly Write[], client = "shop", tenant = "acme"): WriteCount[] {
  const rows = new Map<string, WriteCount>();
  for (const [daysAgo, kind, method = "PUT"] of writes) {
    const count = countOf({ tenant, client, version: "1.0", method }, kind, NOW_MS - daysAgo * DAY_MS);
    const key = `${count.day} ${method}`;
    const before = rows.get(key);
    rows.set(key, before === undefined ? count : sumOf(before, count));
  }
  return [...rows.values()];
}

const days = (from: number, to: number, kind: WriteKind = "with"): Write[] =>
  Array.from({ length: from - to + 1 }, (_, n): Write => [from - n, kind]);

const CASES: readonly {
  title: string;
  writes: readonly Write[];
  state: ClientState;
  enforcement?: Enforcement;
  cleanDays?: number;
  regressedDaysAgo?: number;
}[] = [
  { title: "with If-Match for a week", writes: days(7, 0), state: "ready" },
  { title: "with If-Match for six days", writes: days(6, 0), state: "clean" },
  {
    title: "without, and then with for a week",
    writes: [[9, "allowed"], ...days(6, 0), [7, "allowed"]],
    state: "ready",
  },
  {
    title: "without six days ago, with since",
    writes: [[6, "allowed"], ...days(5, 0)],
    state: "would-break",
  },
  { title: "without alone", writes: days(20, 0, "allowed"), state: "would-break" },
  {
    title: "by turns",
    writes: [[0.1, "allowed"], [0, "with"], ...days(20, 1)],
    state: "regressed",
    regressedDaysAgo: 0.1,
  },
  {
    title: "by turns all the time",
    writes: [...days(20, 0, "allowed"), ...days(20, 0)],
    state: "would-break",
  },
  { title: "without two weeks ago, and nothing since", writes: [[14, "allowed"]], state: "silent" },
  {
    title: "clean for ten days, and then without",
    writes: [...days(20, 10), [2, "allowed"]],
    state: "regressed",
    regressedDaysAgo: 2,
  },
  {
    title: "without, clean for a week, and without again",
    writes: [[12, "allowed"], ...days(11, 4), [3, "allowed"]],
    state: "regressed",
    regressedDaysAgo: 3,
  },
  {
    title: "without, silent for a month, and without again",
    writes: [
      [40, "allowed"],
      [3, "allowed"],
    ],
    state: "would-break",
  },
  {
    title: "regressed once, and clean since for a week",
    writes: [...days(30, 20), [10, "allowed"], ...days(9, 0)],
    state: "ready",
    regressedDaysAgo: 10,
  },
  {
    title: "refused since it is enforced",
    writes: days(3, 0, "refused"),
    state: "refused",
    enforcement: observe(["shop"]),
  },
  {
    title: "refused after it was clean and enforced",
    writes: [...days(20, 2), [1, "refused"]],
    state: "refused",
    enforcement: observe(["shop"]),
    regressedDaysAgo: 1,
  },
  {
    title: "enforced, and clean since",
    writes: [[20, "refused"], ...days(19, 0)],
    state: "enforced",
    enforcement: observe(["shop"]),
  },
  {
    title: "enforced by each method that it uses",
    writes: days(3, 0),
    state: "enforced",
    enforcement: observe([], ["PUT"]),
  },
  {
    title: "refused in an enforced method, clean in the other",
    writes: [...days(9, 0), [1, "refused", "DELETE"]],
    state: "refused",
    enforcement: observe([], ["DELETE"]),
    regressedDaysAgo: 1,
  },
  {
    title: "without before the service became strict",
    writes: days(3, 0, "allowed"),
    state: "refused",
    enforcement: { mode: "strict" },
  },
  {
    title: "one write with If-Match, no days asked for",
    writes: [
      [0.01, "allowed"],
      [0, "with"],
    ],
    state: "ready",
    cleanDays: 0,
  },
  {
    title: "one write without, no days asked for",
    writes: [
      [0.01, "with"],
      [0, "allowed"],
    ],
    state: "would-break",
    cleanDays: 0,
  },
];

describe("a client that writes", () => {
  test.each([...CASES])(
    "$title is $state",
    ({ writes, state, enforcement = observe(), cleanDays, regressedDaysAgo }) => {
      const [client] = readinessOf(counts(writes), enforcement, NOW_MS, cleanDays);
      expect(client?.state).toBe(state);
      expect(client?.regressedAtMs).toBe(
        regressedDaysAgo === undefined ? null : NOW_MS - regressedDaysAgo * DAY_MS,
      );
    },
  );

  test("is judged by all of its tenants and versions", () => {
    const both = [...counts(days(20, 0)), ...counts([[1, "allowed"]], "shop", "globex")];
    expect(readinessOf(both, observe(), NOW_MS).map(({ state }) => state)).toEqual(["regressed"]);
  });
});

describe("the plan", () => {
  const ready = counts(days(9, 0), "billing");
  const unready = counts(days(9, 0, "allowed"), "shop");

  test("enforces the ready clients beside those that are enforced, and no other", () => {
    const plan = planOf([...ready, ...unready], observe(["crm"]), NOW_MS);
    expect(plan).toMatchObject({
      kind: "staged",
      enforcedClients: ["crm", "billing"],
      enforcedMethods: [],
      newClients: ["billing"],
    });
  });

  test("enforces a method in which clients that are not ready are clean", () => {
    const deletes = days(9, 0).map(([daysAgo, kind]): Write => [daysAgo, kind, "DELETE"]);
    const plan = planOf([...ready, ...unready, ...counts(deletes, "shop")], observe(), NOW_MS);
    expect(plan).toMatchObject({ newClients: ["billing"], newMethods: ["DELETE"] });
  });

  test.each([...WRITE_METHODS])(
    "refuses no %s of a client that was seen, and that is not refused already",
    (method) => {
      const clients = CASES.flatMap(({ writes }, n) => counts(writes, `client-${n}`));
      const plan = planOf(clients, observe(), NOW_MS);
      if (plan.kind !== "staged") throw new Error(plan.kind);
      const next = observe(plan.enforcedClients, plan.enforcedMethods);
      const recent = clients.filter(
        (count) => count.method === method && (count.lastWithoutAtMs ?? 0) > NOW_MS - 7 * DAY_MS,
      );
      const harmed = recent.filter(
        ({ client }) => plan.enforcedClients.includes(client) || next.mode === "strict",
      );
      expect([harmed, plan.newMethods.includes(method) && recent.length > 0]).toEqual([[], false]);
    },
  );

  test("is strict where all clients are ready or enforced, or where the rollout is over", () => {
    expect(planOf([...ready, ...counts(days(9, 0), "crm")], observe(["crm"]), NOW_MS).kind).toBe("all-ready");
    expect(planOf([], observe(), NOW_MS).kind).toBe("staged");
    expect(planOf(unready, { mode: "strict" }, NOW_MS).kind).toBe("strict");
    expect(planOf(unready, observe(), NOW_MS + 30 * DAY_MS).kind).toBe("strict");
  });
});
