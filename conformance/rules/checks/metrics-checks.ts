import { type Exposition, parseExposition, seriesOf, typeOf } from "../../http/exposition.ts";
import type { Attempt } from "../../probe/attempt.ts";
import type { Check } from "../../probe/check.ts";
import { CouldNotRun, Inconclusive } from "../../probe/outcome-signal.ts";
import { updatedCustomer } from "../../probe/refused.ts";
import { accepted, type Method } from "../../probe/trial.ts";
import type { met as rules } from "../metrics.ts";

const REQUIRED = "http_precondition_required_total";
const FAILED = "http_precondition_failed_total";
type Counts = { readonly [REQUIRED]: number; readonly [FAILED]: number };

/** Numbers that other traffic would hardly hit by chance. */
const EVENTS = 7;
const EVENTS_QUICK = 3;
const BURST = 32;
const eventsOf = (t: Attempt) => (t.quick ? EVENTS_QUICK : EVENTS);
/** How long counters may lag behind the responses that they count. */
const LAG_MS = 2000;
const LAG_QUICK_MS = 600;
const POLL_MS = 50;

/** All metrics URLs of the profile, in one list. */
async function scrape(t: Attempt): Promise<Exposition[]> {
  const pages: Exposition[] = [];
  for (const url of t.kit.profile.metrics.urls) {
    const seen = await t.send({
      purpose: "scrape",
      caller: "metrics",
      method: "GET",
      url,
      headers: [["Accept", "text/plain, */*;q=0.5"]],
    });
    if (seen.status !== 200)
      throw new CouldNotRun(
        `the metrics at ${url} were answered ${seen.status}; see --metrics-url and --metrics-header`,
      );
    pages.push(parseExposition(seen.text));
  }
  return pages;
}

function sum(pages: readonly Exposition[], counter: string): number {
  return pages.reduce(
    (total, page) => [...seriesOf(page, counter).values()].reduce((a, b) => a + b, total),
    0,
  );
}

async function counts(t: Attempt): Promise<Counts> {
  const pages = await scrape(t);
  return { [REQUIRED]: sum(pages, REQUIRED), [FAILED]: sum(pages, FAILED) };
}

/** What a window shows: how often each status was answered to us in it, and by how much each counter rose. */
type Window = { readonly answered: Counts; readonly rose: Counts };

/** Runs `act` and waits for a counter that lags behind. */
async function watch(
  t: Attempt,
  act: () => Promise<void>,
  moving: keyof Counts | undefined,
): Promise<Window> {
  const { ledger } = t.kit.wire;
  const before = await counts(t);
  const from = ledger.length;
  await act();
  // Every reply of the window counts, whichever request it came to: a deployment may answer otherwise than expected.
  const replies = ledger.slice(from);
  const answered = {
    [REQUIRED]: replies.filter(({ status }) => status === 428).length,
    [FAILED]: replies.filter(({ status }) => status === 412).length,
  };
  const deadline = performance.now() + (t.kit.profile.metrics.lagMs ?? (t.quick ? LAG_QUICK_MS : LAG_MS));
  let after = await counts(t);
  while (
    moving !== undefined &&
    after[moving] - before[moving] < answered[moving] &&
    performance.now() < deadline
  ) {
    await Bun.sleep(POLL_MS);
    after = await counts(t);
  }
  return {
    answered,
    rose: { [REQUIRED]: after[REQUIRED] - before[REQUIRED], [FAILED]: after[FAILED] - before[FAILED] },
  };
}

/** Refused writes. Absent and blank are the same refusal, so both are among those that are counted. */
async function refuse(t: Attempt, method: Method, status: 428 | 412): Promise<void> {
  const { customer, former } =
    method === "DELETE"
      ? await updatedCustomer(t)
      : { customer: t.kit.main, former: (await t.twin("PUT", t.kit.main)).former };
  const blank = [["If-Match", "  "]] as const;
  let answered = 0;
  for (let event = 0; event < eventsOf(t); event += 1) {
    const odd = event % 3 === 2;
    const ifMatch = status === 412 ? (odd ? '"kit-never-given"' : former) : odd ? blank : undefined;
    const seen = await t.rawWrite(method, customer, { ifMatch, purpose: "to be counted" });
    if (seen.status === status) answered += 1;
  }
  // A refusal that is answered otherwise is the IFM rules' matter; what is counted then is not to be told.
  if (answered < eventsOf(t))
    throw new CouldNotRun(
      `${answered} of ${eventsOf(t)} times ${method} was answered ${status} where it should; see the IFM rules`,
    );
}

async function counted(t: Attempt, method: Method, status: 428 | 412, name: string): Promise<void> {
  const counter = status === 428 ? REQUIRED : FAILED;
  const evidence = t.probe(`${method} answered ${status}, several times`, `${counter} rises by as many`);
  const { answered, rose } = await watch(t, () => refuse(t, method, status), counter);
  evidence.came = `${answered[counter]} answers of ${status}; ${counter} rose by ${rose[counter]}`;
  const pages = await scrape(t);
  const exists = pages.some((page) => seriesOf(page, counter).size > 0);
  const after = `${answered[counter]} responses of ${status}`;
  if (!t.check(`${name}exists`, exists, absence(pages, counter, after))) return;
  const enough = t.kit.options.exclusive
    ? rose[counter] === answered[counter]
    : rose[counter] >= answered[counter];
  const how = status === 428 ? "If-Match absent or blank" : "If-Match stale or never given";
  t.check(
    `${name}counts`,
    enough,
    `${answered[counter]} times ${method} was answered ${status}, ${how}, and ${counter} rose by ${rose[counter]}`,
  );
}

/** Many refusals at once: a counter that is read, raised and written back loses some. */
async function burst(t: Attempt, status: 428 | 412): Promise<void> {
  const counter = status === 428 ? REQUIRED : FAILED;
  const evidence = t.probe(`${BURST} PUTs at once, answered ${status}`, `${counter} rises by as many`);
  const { former } = await t.twin("PUT", t.kit.main);
  const ifMatch = status === 412 ? former : undefined;
  const act = async () => {
    await Promise.all(
      Array.from({ length: BURST }, () =>
        t.rawWrite("PUT", t.kit.main, { ifMatch, purpose: "to be counted" }),
      ),
    );
  };
  const { answered, rose } = await watch(t, act, counter);
  evidence.came = `${answered[counter]} answers of ${status}; ${counter} rose by ${rose[counter]}`;
  t.check(
    "counts-at-once",
    t.kit.options.exclusive ? rose[counter] === answered[counter] : rose[counter] >= answered[counter],
    `${answered[counter]} PUTs at once were answered ${status}, and ${counter} rose by ${rose[counter]}`,
  );
}

function absence(pages: readonly Exposition[], counter: string, after: string): string {
  const malformed = pages.find((page) => page.malformed !== undefined)?.malformed;
  const why =
    malformed === undefined
      ? ""
      : `; the exposition does not parse, first at the line ${JSON.stringify(malformed.slice(0, 80))}`;
  return `no series ${counter} is found after ${after}${why}`;
}

/**
 * Whether a counter rose by more than there were replies that it counts. Beside other traffic, only a rise by exactly
 * our number of other events, in two windows one after the other, is believed to be ours.
 * @throws Inconclusive when others move it.
 */
async function excess(
  t: Attempt,
  act: () => Promise<void>,
  counter: keyof Counts,
  events: number,
): Promise<number> {
  const look = async () => {
    const { answered, rose } = await watch(t, act, undefined);
    return rose[counter] - answered[counter];
  };
  const first = await look();
  if (first <= 0 || t.kit.options.exclusive) return first;
  const second = await look();
  if (first === second && first % events === 0) return first;
  throw new Inconclusive(
    `${counter} is moved by others meanwhile; run with --exclusive when nobody else writes`,
  );
}

/** `status` must not move the other counter. */
async function apart(t: Attempt, status: 428 | 412): Promise<void> {
  const other = status === 428 ? FAILED : REQUIRED;
  const evidence = t.probe(`PUT answered ${status}, ${eventsOf(t)} times`, `${other} stays`);
  const moved = await excess(t, () => refuse(t, "PUT", status), other, eventsOf(t));
  evidence.came = `${other} rose by ${moved}`;
  t.check(
    "apart",
    moved <= 0,
    `${eventsOf(t)} times PUT was answered ${status}, and ${other} rose by ${moved}`,
  );
}

/** Reads, accepted writes, 404 and 400. */
async function harmless(t: Attempt): Promise<void> {
  for (let event = 0; event < eventsOf(t); event += 1) {
    const now = await t.state(t.kit.main, "read");
    const put = await t.rawWrite("PUT", t.kit.main, { ifMatch: now.tag, purpose: "accepted write" });
    if (!accepted(put.status))
      throw new CouldNotRun(`PUT with the current tag was answered ${put.status}; see IFM-01`);
    await t.get(t.kit.ground.missing(), { purpose: "read of a missing customer" });
    await t.rawWrite("PUT", t.kit.ground.missing(), {
      ifMatch: now.tag,
      purpose: "PUT to a missing customer",
    });
    await t.get(t.kit.main, { query: "?fields=kitunknown", purpose: "unknown field" });
  }
}

export const met = {
  "MET-01": async (t) => {
    await counted(t, "PUT", 428, "");
    await burst(t, 428);
  },
  "MET-02": async (t) => {
    await counted(t, "PUT", 412, "");
    await burst(t, 412);
  },
  "MET-03": (t) => apart(t, 428),
  "MET-04": (t) => apart(t, 412),
  "MET-05": async (t) => {
    for (const [name, counter, status] of [
      ["required-stays", REQUIRED, 428],
      ["failed-stays", FAILED, 412],
    ] as const) {
      const evidence = t.probe("reads, an accepted PUT, 404s and a 400, several times", `${counter} stays`);
      const moved = await excess(t, () => harmless(t), counter, eventsOf(t));
      evidence.came = `${counter} rose by ${moved}`;
      t.check(name, moved <= 0, `without as many answers of ${status} ${counter} rose by ${moved}`);
    }
  },
  "MET-06": async (t) => {
    await counted(t, "PATCH", 428, "required-");
    await counted(t, "PATCH", 412, "failed-");
  },
  "MET-07": async (t) => {
    await counted(t, "DELETE", 428, "required-");
    await counted(t, "DELETE", 412, "failed-");
  },
  "MET-08": async (t) => {
    const pages = [await scrape(t)];
    await refuse(t, "PUT", 428);
    await refuse(t, "PUT", 412);
    // Twice: a counter that a scrape resets falls from the first to the second.
    pages.push(await scrape(t), await scrape(t));
    for (const counter of [REQUIRED, FAILED]) {
      const evidence = t.probe(
        `three scrapes of ${counter}`,
        "a counter, and no series of it falls or vanishes",
      );
      for (const [index, page] of (pages[0] ?? []).entries()) {
        const type = typeOf(page, counter);
        evidence.came = `type ${type ?? "not declared"}`;
        t.check("type", type === undefined || type === "counter", `${counter} is declared as ${type}`);
        for (let step = 1; step < pages.length; step += 1) {
          const now = pages[step]?.[index];
          for (const [labels, value] of seriesOf(pages[step - 1]?.[index] ?? page, counter)) {
            const later = now === undefined ? undefined : seriesOf(now, counter).get(labels);
            t.check(
              "never-falls",
              later !== undefined && later >= value,
              `${counter}${labels} fell from ${value} to ${later ?? "nothing"}`,
            );
          }
        }
      }
    }
  },
} satisfies Record<(typeof rules)[number]["id"], Check>;
