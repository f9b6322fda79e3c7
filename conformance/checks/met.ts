import { type Exposition, parseExposition, seriesOf, typeOf } from "../exposition.ts";
import { CouldNotRun } from "../outcome-signal.ts";
import type { met as rules } from "../rules/met.ts";
import { accepted, type Method, type Trial } from "../trial.ts";
import type { Check } from "./check.ts";
import { updatedCustomer } from "./refusal.ts";

const REQUIRED = "http_precondition_required_total";
const FAILED = "http_precondition_failed_total";
type Counts = { readonly [REQUIRED]: number; readonly [FAILED]: number };

/** A number that other traffic would hardly hit by chance. */
const EVENTS = 7;
/** How long counters may lag behind the responses that they count. */
const LAG_MS = 2000;
const LAG_QUICK_MS = 600;
const POLL_MS = 50;

/** All metrics URLs of the profile, in one list. */
async function scrape(t: Trial): Promise<Exposition[]> {
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

async function counts(t: Trial): Promise<Counts> {
  const pages = await scrape(t);
  return { [REQUIRED]: sum(pages, REQUIRED), [FAILED]: sum(pages, FAILED) };
}

/** Runs `act` in a window and tells by how much each counter rose; waits for a counter that lags. */
async function rise(
  t: Trial,
  act: () => Promise<number>,
  moving: keyof Counts | undefined,
): Promise<{ sent: number; rose: Counts }> {
  const before = await counts(t);
  const sent = await act();
  const deadline = performance.now() + (t.quick ? LAG_QUICK_MS : LAG_MS);
  let after = await counts(t);
  while (moving !== undefined && after[moving] - before[moving] < sent && performance.now() < deadline) {
    await Bun.sleep(POLL_MS);
    after = await counts(t);
  }
  return {
    sent,
    rose: { [REQUIRED]: after[REQUIRED] - before[REQUIRED], [FAILED]: after[FAILED] - before[FAILED] },
  };
}

/** Refused writes, and how many of them were answered by the status that the counter counts. */
async function refuse(t: Trial, method: Method, status: 428 | 412): Promise<number> {
  const { former } = method === "DELETE" ? await updatedCustomer(t) : await t.twin("PUT", t.kit.main);
  const target = method === "DELETE" ? (t.kit.ground.made.at(-1) ?? t.kit.main) : t.kit.main;
  let answered = 0;
  for (let event = 0; event < EVENTS; event += 1) {
    // Absent and blank are the same refusal, so both are among those that are counted.
    const ifMatch =
      status === 412
        ? event % 3 === 2
          ? '"kit-never-given"'
          : former
        : event % 3 === 2
          ? ([["If-Match", "  "]] as const)
          : undefined;
    const seen = await t.write(method, target, { ifMatch, purpose: "to be counted" });
    if (seen.status === status) answered += 1;
  }
  if (answered === 0)
    throw new CouldNotRun(`no ${method} could be brought to be answered ${status}; see the IFM rules`);
  return answered;
}

async function counted(t: Trial, method: Method, status: 428 | 412, name: string): Promise<void> {
  const counter = status === 428 ? REQUIRED : FAILED;
  const evidence = t.probe(`${EVENTS} times ${method} answered ${status}`, `${counter} rises by as many`);
  const { sent, rose } = await rise(t, () => refuse(t, method, status), counter);
  evidence.came = `${counter} rose by ${rose[counter]}`;
  const pages = await scrape(t);
  const exists = pages.some((page) => seriesOf(page, counter).size > 0);
  if (!t.check(`${name}exists`, exists, `no series ${counter} is found after ${sent} responses of ${status}`))
    return;
  const enough = t.kit.options.exclusive ? rose[counter] === sent : rose[counter] >= sent;
  t.check(
    `${name}counts`,
    enough,
    `${sent} times ${method} was answered ${status}, and ${counter} rose by ${rose[counter]}`,
  );
}

/** `status` must not move the other counter. Beside other traffic only a rise as large as ours, twice, counts. */
async function apart(t: Trial, status: 428 | 412): Promise<void> {
  const other = status === 428 ? FAILED : REQUIRED;
  const evidence = t.probe(`${EVENTS} times PUT answered ${status}`, `${other} stays`);
  const look = async () => {
    const window = await rise(t, () => refuse(t, "PUT", status), undefined);
    return {
      ...window,
      moved: t.kit.options.exclusive ? window.rose[other] > 0 : window.rose[other] >= window.sent,
    };
  };
  let found = await look();
  if (found.moved && !t.kit.options.exclusive) found = await look();
  evidence.came = `${other} rose by ${found.rose[other]}`;
  t.check(
    "apart",
    !found.moved,
    `${found.sent} times PUT was answered ${status}, and ${other} rose by ${found.rose[other]}`,
  );
}

/** Reads, accepted writes and 404. */
async function harmless(t: Trial): Promise<number> {
  for (let event = 0; event < EVENTS; event += 1) {
    const now = await t.state(t.kit.main, "read");
    const put = await t.write("PUT", t.kit.main, { ifMatch: now.tag, purpose: "accepted write" });
    if (!accepted(put.status))
      throw new CouldNotRun(`PUT with the current tag was answered ${put.status}; see IFM-01`);
    await t.get(t.kit.ground.missing(), { purpose: "read of a missing customer" });
    await t.get(t.kit.main, { query: "?fields=kitunknown", purpose: "unknown field" });
  }
  return EVENTS;
}

export const met = {
  "MET-01": (t) => counted(t, "PUT", 428, ""),
  "MET-02": (t) => counted(t, "PUT", 412, ""),
  "MET-03": (t) => apart(t, 428),
  "MET-04": (t) => apart(t, 412),
  "MET-05": async (t) => {
    const evidence = t.probe(`${EVENTS} times reads, an accepted PUT, a 404 and a 400`, "both counters stay");
    const moves = ({ sent, rose }: { sent: number; rose: Counts }, counter: keyof Counts) =>
      t.kit.options.exclusive ? rose[counter] > 0 : rose[counter] >= sent;
    let window = await rise(t, () => harmless(t), undefined);
    if (!t.kit.options.exclusive && (moves(window, REQUIRED) || moves(window, FAILED)))
      window = await rise(t, () => harmless(t), undefined);
    evidence.came = `${REQUIRED} rose by ${window.rose[REQUIRED]}, ${FAILED} by ${window.rose[FAILED]}`;
    t.check(
      "required-stays",
      !moves(window, REQUIRED),
      `without any 428 ${REQUIRED} rose by ${window.rose[REQUIRED]}`,
    );
    t.check(
      "failed-stays",
      !moves(window, FAILED),
      `without any 412 ${FAILED} rose by ${window.rose[FAILED]}`,
    );
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
    const before = await scrape(t);
    await refuse(t, "PUT", 428);
    await refuse(t, "PUT", 412);
    const after = await scrape(t);
    for (const counter of [REQUIRED, FAILED]) {
      const evidence = t.probe(
        `two scrapes of ${counter}`,
        "a counter, and no series of it falls or vanishes",
      );
      for (const [index, page] of after.entries()) {
        const type = typeOf(page, counter);
        evidence.came = `type ${type ?? "not declared"}`;
        t.check("type", type === undefined || type === "counter", `${counter} is declared as ${type}`);
        const former = before[index];
        for (const [labels, value] of former === undefined ? [] : seriesOf(former, counter)) {
          const now = seriesOf(page, counter).get(labels);
          t.check(
            "never-falls",
            now !== undefined && now >= value,
            `${counter}${labels} went from ${value} to ${now ?? "nothing"}`,
          );
        }
      }
    }
  },
} satisfies Record<(typeof rules)[number]["id"], Check>;
