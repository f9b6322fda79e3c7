/** MET: the two counters. */
import { seriesOf, typeOf } from "../http/exposition.ts";
import { CouldNotRun, Inconclusive } from "../http/outcome-signal.ts";
import type { Attempt } from "../probe/attempt.ts";
import { BY_MAKER } from "../probe/callers/own-customers.ts";
import { eventsOf, mustStay, nudge, refuse, risen } from "../probe/counters/counted.ts";
import {
  COUNTERS,
  type Counter,
  FAILED,
  REQUIRED,
  type Scrape,
  STATUS_OF,
  type Window,
} from "../probe/counters/counters.ts";
import { letGo } from "../probe/races/race.ts";
import { contendersOf } from "../probe/races/round.ts";
import { together } from "../probe/races/together.ts";
import { NEEDS } from "../probe/refusals/refused.ts";
import { firstOfEach, INEXACT, ifMatch, NEVER_GIVEN_TAG } from "../probe/requests/if-match-forms.ts";
import { type Rule, rule } from "../probe/rule.ts";
import type { Method } from "../probe/snapshot.ts";
import type { AskOptions, Lines } from "../probe/trial.ts";

const hurts = "The rollout of the precondition is steered by numbers that are wrong.";
const spec = ["7 rule 4"] as const;

const BURST = 32;

async function counted(t: Attempt, method: Method, counter: Counter, name: string): Promise<void> {
  const status = STATUS_OF[counter];
  const proof = t.proof(`${method} answered ${status}, several times`, `${counter} rises by as many`);
  const window = await risen(t, counter, () => refuse(t, method, status));
  const { answered, rose, after, right } = window;
  proof.show(after.seen, { came: counts(window, counter) });
  const exists = after.pages.some((page) => seriesOf(page, counter).size > 0);
  const found = absence(after, counter, `${answered[counter]} responses of ${status}`);
  if (!proof.must(`${name}exists`, exists, found)) return;
  const how = status === 428 ? "If-Match absent or blank" : "If-Match stale or never given";
  proof.must(
    `${name}counts`,
    right,
    `${answered[counter]} times ${method} was answered ${status}, ${how}, and ${counter} rose by ${rose[counter]}`,
  );
}

const counts = ({ answered, rose }: Window, counter: Counter): string =>
  `${answered[counter]} answers of ${STATUS_OF[counter]}; ${counter} rose by ${rose[counter]}`;

function absence({ pages }: Scrape, counter: Counter, after: string): string {
  const malformed = pages.find((page) => page.malformed !== undefined)?.malformed;
  const why =
    malformed === undefined
      ? ""
      : `; the exposition does not parse, first at the line ${JSON.stringify(malformed.slice(0, 80))}`;
  return `no series ${counter} is found after ${after}${why}`;
}

/** Many refusals at once: a counter that is read, raised and written back loses some. */
async function burst(t: Attempt, counter: Counter): Promise<void> {
  const status = STATUS_OF[counter];
  const proof = t.proof(`${BURST} PUTs at once, answered ${status}`, `${counter} rises by as many`);
  const { former } = await t.control("PUT");
  const lines = status === 412 ? ifMatch(former) : [];
  const window = await risen(t, counter, async () => {
    const one = () => t.sendWrite("PUT", t.kit.main, { ifMatch: lines, purpose: "to be counted" });
    await together(Array.from({ length: BURST }, one));
  });
  const { answered, rose, after, right } = window;
  const found = `${answered[counter]} PUTs at once were answered ${status}, and ${counter} rose by ${rose[counter]}`;
  proof.show(after.seen, { came: counts(window, counter) }).must("counts-at-once", right, found);
}

/** Those that lose a race have passed the check, and the database refuses them: that is another piece of code. */
async function losersOfRace(t: Attempt): Promise<void> {
  const { main } = t.kit;
  const proof = t.proof("PUTs at once, all with the current tag", `${FAILED} rises by as many as lose`);
  const { answered, rose, after, right } = await risen(t, FAILED, async () => {
    const { tag } = await t.state(main, "read before");
    const one = () => t.hold("PUT", main, { ifMatch: tag, purpose: "to be counted" });
    await letGo(t, await together(Array.from({ length: contendersOf(t) }, one)));
  });
  if (answered[FAILED] === 0) return;
  const lost = `${answered[FAILED]} PUTs that lost a race were answered 412`;
  proof.show(after.seen, { came: `${lost}; ${FAILED} rose by ${rose[FAILED]}` });
  proof.must("counts-losers", right, `${lost}, and ${FAILED} rose by ${rose[FAILED]}`);
}

/** Refused for its credentials, where any are asked for; else it is not sent. */
async function anonymousWrite(t: Attempt, tag: string): Promise<void> {
  const caller = "anonymous" as const;
  const { status } = await t.get(t.kit.main, { caller, purpose: "are credentials asked for" });
  if (t.kit.profile.main.length > 0 && status === 401)
    await t.sendWrite("PUT", t.kit.main, { caller, ifMatch: tag, purpose: "PUT without credentials" });
}

/** Reads, among them one that may be answered 304, accepted writes, 404, 400 and 401. */
async function harmless(t: Attempt): Promise<void> {
  for (let event = 0; event < eventsOf(t); event += 1) {
    if (await t.patchOffered()) await t.control("PATCH");
    const { tag } = await t.control("PUT");
    await t.get(t.kit.main, { headers: [["If-None-Match", tag]], purpose: "read with the current tag" });
    await t.get(t.kit.ground.missing(), { purpose: "read of a missing customer" });
    await t.sendWrite("PUT", t.kit.ground.missing(), { ifMatch: tag, purpose: "PUT to a missing customer" });
    await t.get(t.kit.main, { query: "?fields=kitunknown", purpose: "unknown field" });
    await anonymousWrite(t, tag);
  }
}

type Sent = readonly [what: string, send: () => Promise<unknown>];

/** Every form of a refusal, each several times: what one branch of the code answers, another may count. */
async function everyForm(t: Attempt): Promise<readonly Sent[]> {
  const { former, tag } = await t.control("PUT");
  const purpose = "to be counted";
  const put =
    (lines: Lines, options: AskOptions = {}, to = t.kit.main) =>
    () =>
      t.sendWrite("PUT", to, { ifMatch: lines, purpose, ...options });
  /** Whatever counts may hang on a connection. */
  const onOneConnection = async () => {
    const via = t.kit.wire.connect();
    try {
      for (const lines of [[], ifMatch(former), []]) await put(lines, { via })();
    } finally {
      via.close();
    }
  };
  const missing = t.kit.ground.missing();
  const limited = { caller: "limited" } as const;
  const other = { caller: "other-tenant" } as const;
  const own = await t.kit.ground.madeBy("other-tenant");
  const { weak, unquoted, star, list } = INEXACT;
  const forms = firstOfEach(weak, unquoted, star, list);
  return [
    ...forms.flatMap((derive): Sent[] => {
      const form = derive(tag, former, t.kit.main);
      return form === undefined ? [] : [[`PUT with ${form.what}`, put(form.lines)]];
    }),
    ["PUT without If-Match, with a stale tag and without If-Match on one connection", onOneConnection],
    ["PUT with an empty If-Match", put(ifMatch(""))],
    ...(t.gentlyLeavesOut("a tag of 300 characters")
      ? []
      : [["PUT with a tag of 300 characters", put(ifMatch(`"${"a".repeat(300)}"`))] as const]),
    ["PUT to a missing customer without If-Match", put([], {}, missing)],
    ["PUT to a missing customer with If-Match", put(ifMatch(tag), {}, missing)],
    ["PUT without If-Match and with parameters", put([], { query: "?fields=name" })],
    ["PUT with a stale tag and parameters", put(ifMatch(former), { query: "?fields=name" })],
    ["PUT without If-Match, in chunks", put([], { framing: "chunked" })],
    ["PUT with a stale tag, in chunks", put(ifMatch(former), { framing: "chunked" })],
    ["PUT without If-Match and with broken JSON", put([], { body: "{" })],
    ["PUT with a stale tag and an empty object", put(ifMatch(former), { body: "{}" })],
    ["PUT with the current tag and an empty object", put(ifMatch(tag), { body: "{}" })],
    ["PUT with the current tag and broken JSON", put(ifMatch(tag), { body: "{" })],
    ...(t.kit.profile.limited === undefined
      ? []
      : ([
          ["PUT by the limited caller without If-Match", put([], limited)],
          ["PUT by the limited caller with a stale tag", put(ifMatch(former), limited)],
        ] as const)),
    ...(t.kit.profile.otherTenant === undefined
      ? []
      : ([
          ["PUT with a stale tag by another tenant", put(ifMatch(former), other)],
          ["PUT without If-Match by another tenant", put([], other)],
        ] as const)),
    ...(own === undefined
      ? []
      : ([
          [`PUT without If-Match ${BY_MAKER["other-tenant"]}`, put([], {}, own)],
          [`PUT with a tag never given ${BY_MAKER["other-tenant"]}`, put(ifMatch(NEVER_GIVEN_TAG), {}, own)],
        ] as const)),
  ];
}

/** They look at what must not be counted. */
const OVERCOUNTING = ["MET-01", "MET-02", "MET-03", "MET-04", "MET-05"] as const;

export const metrics: readonly Rule[] = [
  ...(
    [
      ["MET-01", REQUIRED, "IFM-04"],
      ["MET-02", FAILED, "IFM-03"],
    ] as const
  ).map(([id, counter, after]) =>
    rule(id, `${counter} counts every ${STATUS_OF[counter]} on PUT`, {
      spec,
      reading: "The counter exists and rises by one for each.",
      hurts,
      needs: ["metrics", "write"],
      after: [after],
      async check(t) {
        let missedOnce: Inconclusive | undefined;
        try {
          await counted(t, "PUT", counter, "");
        } catch (error) {
          if (!(error instanceof Inconclusive)) throw error;
          missedOnce = error;
        }
        // So many events show a loss of one in ten each time.
        if (!t.gentlyLeavesOut("a burst at once")) await burst(t, counter);
        if (counter === FAILED) await losersOfRace(t);
        if (missedOnce !== undefined) throw missedOnce;
      },
    }),
  ),
  ...(
    [
      ["MET-03", REQUIRED, FAILED],
      ["MET-04", FAILED, REQUIRED],
    ] as const
  ).map(([id, moved, other]) =>
    rule(id, `${STATUS_OF[moved]} does not move the counter of ${STATUS_OF[other]}`, {
      spec,
      hurts,
      needs: ["metrics", "write"],
      async check(t) {
        const what = `PUT answered ${STATUS_OF[moved]}, ${eventsOf(t)} times`;
        await mustStay(t, "apart", other, what, () => refuse(t, "PUT", STATUS_OF[moved]));
      },
    }),
  ),
  rule("MET-05", "Reads, accepted writes and 404 move neither counter", {
    spec,
    hurts,
    needs: ["metrics", "write"],
    async check(t) {
      for (const [name, counter] of [
        ["required-stays", REQUIRED],
        ["failed-stays", FAILED],
      ] as const)
        await mustStay(t, name, counter, "reads, 304s, accepted writes, 404s and 400s", () => harmless(t));
    },
  }),
  ...(
    [
      ["MET-06", "PATCH"],
      ["MET-07", "DELETE"],
    ] as const
  ).map(([id, method]) =>
    rule(id, `The refusals of ${method} are counted`, {
      spec: [...spec, "4.3 same"],
      reading: "The counters count 428 and 412 responses, whatever the method.",
      hurts,
      needs: ["metrics", ...NEEDS[method]],
      async check(t) {
        await counted(t, method, REQUIRED, "required-");
        await counted(t, method, FAILED, "failed-");
      },
    }),
  ),
  rule("MET-08", "The counters are counters and never fall", {
    spec,
    reading:
      "Declared as a counter where a type is declared; no series falls to nothing or vanishes between scrapes.",
    hurts: "Rates and alerts over them go wrong.",
    needs: ["metrics", "write"],
    async check(t) {
      const { counters } = t.kit;
      await counters.needOneProcess(t);
      // A restart makes them fall once; a service that resets them does so again.
      const [first, second] = [await falls(t), await falls(t)];
      const several = [...first.fell, ...second.fell].find(({ to }) => to > 0);
      if (several !== undefined)
        throw new CouldNotRun(
          `${several.found}, and not to zero: several processes may answer at one URL. List the URL of each (--metrics-url, repeatable)`,
        );
      for (const [counter, type, scrape] of second.types) {
        const proof = t.proof(
          `three scrapes of ${counter}`,
          "a counter, and no series of it falls or vanishes",
        );
        proof.show(scrape.seen, { came: `type ${type ?? "not declared"}` });
        proof.must("type", type === undefined || type === "counter", `${counter} is declared as ${type}`);
        const fell = second.fell.find((each) => each.counter === counter);
        const before = first.fell.find((each) => each.counter === counter);
        if ((fell === undefined) !== (before === undefined))
          throw new Inconclusive(`${(fell ?? before)?.found} once and not again`);
        proof.must("never-falls", fell === undefined, fell?.found ?? "");
      }
    },
  }),
  rule("MET-09", "Every form of a refusal is counted as what it was answered", {
    spec,
    reading:
      "Weak, unquoted, listed, missing, malformed, with parameters, in chunks, one after the other on a connection, by another caller or another tenant: whichever branch of the code refuses, the answer is counted once. Over the whole of an exclusive run nothing else is counted either, save what an answer of 5xx may hide.",
    hurts,
    needs: ["metrics", "write"],
    after: [...OVERCOUNTING],
    async check(t) {
      const { counters, options } = t.kit;
      await counters.needOneProcess(t);
      const times = t.quick ? 2 : 3;
      for (const [what, act] of await everyForm(t)) {
        const repeat = async () => {
          for (let time = 0; time < times; time += 1) await act();
        };
        const look = () => counters.watch(t, repeat);
        let window = await look();
        const wrong = ({ rose, answered }: Window) =>
          COUNTERS.find((counter) =>
            options.exclusive ? rose[counter] !== answered[counter] : rose[counter] < answered[counter],
          );
        if (wrong(window) !== undefined) {
          await counters.needOneProcess(t, nudge(t));
          window = await look();
        }
        const counter = wrong(window);
        const { rose, answered, after } = window;
        t.proof(`${what}, ${times} times`, "each 428 and each 412 is counted once")
          .show(after.seen)
          .must("counts", counter === undefined, () => {
            const name = counter ?? REQUIRED;
            return `${what}: ${answered[name]} answers of ${STATUS_OF[name]}, and ${name} rose by ${rose[name]}`;
          });
      }
      if (t.failures.length === 0) await wholeRun(t);
    },
  }),
];

/** From the first request of the run to now: what no short window shows. */
async function wholeRun(t: Attempt): Promise<void> {
  const { counters } = t.kit;
  const window = await counters.wholeRun(t);
  if (window === undefined) {
    t.note = "; the whole run was not compared, since no count is known from its start";
    return;
  }
  const { answered, unclear, rose, after } = window;
  t.note = `; over the whole run ${COUNTERS.map((each) => `${answered[each]} answers of ${STATUS_OF[each]}`).join(" and ")} were compared`;
  for (const counter of COUNTERS) {
    const status = STATUS_OF[counter];
    const lost = answered[counter] - rose[counter];
    if (lost > 0 && !counters.knowsStart)
      throw new CouldNotRun(
        `each form is counted, and over the whole run ${counter} lacks ${lost}; without process_start_time_seconds lost counts can't be told from a restart: export it, as the usual client libraries do`,
      );
    if (lost > 0) await counters.needOneProcess(t, nudge(t));
    const who = whoWasAnswered(t, status);
    const suspects = who.filter(([, count]) => count === lost).map(([name]) => name);
    const suspect = suspects.length > 0 ? `; as many as were answered to ${suspects.join(", or to ")}` : "";
    const proof = t.proof(
      "all requests of this run",
      `${counter} rises by as many as were answered ${status}`,
    );
    proof.show(after.seen, {
      came: `${who.map(([name, count]) => `${count} to ${name}`).join(", ")}; it rose by ${rose[counter]}`,
    });
    const found = `in this run ${answered[counter]} requests were answered ${status}, and ${counter} rose by ${rose[counter]}`;
    proof.must("whole-run", lost <= 0, `${found}: ${lost} are missing${suspect}`);
    // Others may send requests too, unless the run is exclusive; and what is counted wrongly is blamed once.
    const isBlamed = OVERCOUNTING.some((id) => t.kit.violated.has(id));
    const excess = t.kit.options.exclusive && !isBlamed ? -lost - unclear[counter] : 0;
    proof.must("no-excess", excess <= 0, `${found}: ${excess} too many`);
  }
}

/** How often a status was answered, by caller and method, and by rule. */
function whoWasAnswered(t: Attempt, status: number): [who: string, count: number][] {
  const entries = t.kit.wire.ledger.filter((entry) => entry.status === status);
  const by = (name: (entry: (typeof entries)[number]) => string) =>
    [...Map.groupBy(entries, name)].map(([who, all]): [string, number] => [who, all.length]);
  return [
    ...by(({ caller, method }) => `${method} by the ${caller} caller`),
    ...by(({ rule }) => `requests of ${rule}`),
  ];
}

/** Scrapes around refusals of both kinds, and twice after them: a counter that a scrape resets falls from one to the next. */
async function falls(t: Attempt) {
  const { counters } = t.kit;
  const scrapes = [await counters.scrape(t)];
  await refuse(t, "PUT", 428);
  await refuse(t, "PUT", 412);
  scrapes.push(await counters.scrape(t), await counters.scrape(t));
  const fell: { counter: Counter; found: string; to: number }[] = [];
  for (const [index, { pages }] of scrapes.slice(0, -1).entries())
    for (const [at, page] of pages.entries())
      for (const counter of COUNTERS)
        for (const [labels, value] of seriesOf(page, counter)) {
          const next = scrapes[index + 1]?.pages[at];
          const later = next === undefined ? undefined : seriesOf(next, counter).get(labels);
          if (value > 0 && (later === undefined || later < value))
            fell.push({
              counter,
              found: `${counter}${labels} fell from ${value} to ${later ?? "nothing"}`,
              to: later ?? 0,
            });
        }
  const last = scrapes.at(-1) as Scrape;
  const types = COUNTERS.map((counter) => {
    const types = last.pages.map((page) => typeOf(page, counter));
    return [
      counter,
      types.find((type) => type !== undefined && type !== "counter") ?? types[0],
      last,
    ] as const;
  });
  return { fell, types };
}
