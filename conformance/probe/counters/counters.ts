/** The two counters of 7 rule 4, as scrapes show them, against the answers of this run. */
import { type Exposition, parseExposition, seriesOf } from "../../http/exposition.ts";
import { CouldNotRun, Inconclusive, NoReply } from "../../http/outcome-signal.ts";
import type { Connection } from "../../http/socket-transport.ts";
import type { Ask, Seen, Wire } from "../../http/wire.ts";
import type { RunOptions } from "../../target/options.ts";
import type { Profile } from "../../target/profile.ts";

export const REQUIRED = "http_precondition_required_total";
export const FAILED = "http_precondition_failed_total";
export const COUNTERS = [REQUIRED, FAILED] as const;
export const STATUS_OF = { [REQUIRED]: 428, [FAILED]: 412 } as const;
export type Counter = (typeof COUNTERS)[number];
export type Counts = Readonly<Record<Counter, number>>;

/** One look at all metrics URLs of the profile. */
export type Scrape = { readonly pages: readonly Exposition[]; readonly counts: Counts; readonly seen: Seen };

/** A scrape, and the place in the ledger where it was taken. */
type Mark = { readonly counts: Counts; readonly from: number };

/** How often each status was answered to us in a stretch of time, and by how much each counter rose in it. */
export type Window = {
  readonly answered: Counts;
  /** What may have been answered so before something on the way answered otherwise, or that need not be counted. */
  readonly unclear: Counts;
  readonly rose: Counts;
  readonly after: Scrape;
};

const KNOWN_LAG_MS = 300;
/** Doubled from one look to the next: most counters are there at once, or some milliseconds later. */
const POLL_MS = 5;
const POLL_MS_MAX = 50;
/** Scrapes on connections of their own: so many are hardly all answered by one of several processes. */
const QUIET_SCRAPES = 6;
const REMEDY = "list the metrics URL of every process (--metrics-url, repeatable)";
/** Connections of the census, and refusals of each kind over each of them. */
const CENSUS = { connections: 4, each: 4 } as const;

/** What a scrape needs of a rule. */
type Scraper = {
  readonly kit: { readonly profile: Profile; readonly options: RunOptions; readonly wire: Wire };
  send(ask: Omit<Ask, "rule">): Promise<Seen>;
};

export class Counters {
  /** What the counters should show. */
  #base: Mark | undefined;
  /** The start of the process behind each URL. */
  readonly #started = new Map<string, number>();
  #urls = 0;
  #quiet = false;
  /** Whether counts were missed once, and waiting as long again brought none: they are lost, not late. */
  #noneLater = false;
  /** How long it took at most until all that was answered was counted. */
  #slowestMs = 0;
  /** A counter that was seen to rise later than it may. */
  #late: Counter | undefined;
  /** Where the whole run began, for what only a long stretch shows. */
  start: Mark | undefined;

  /** Whether every process says when it started, so that a restart shows. */
  get knowsStart(): boolean {
    return this.#started.size > 0 && this.#started.size === this.#urls;
  }

  /** @throws CouldNotRun where no metrics can be read, or a process has restarted. */
  async scrape(t: Scraper): Promise<Scrape> {
    this.#urls = t.kit.profile.metrics.urls.length;
    const pages: Exposition[] = [];
    let last: Seen | undefined;
    for (const url of t.kit.profile.metrics.urls) {
      last = await scrapeOne(t, url);
      const page = parseExposition(last.text);
      pages.push(page);
      const started = page.samples.find(({ name }) => name === "process_start_time_seconds")?.value;
      const before = this.#started.get(url);
      if (started !== undefined) this.#started.set(url, started);
      if (started !== undefined && before !== undefined && started !== before) {
        this.#base = undefined;
        this.start = undefined;
        throw new CouldNotRun(
          `the process behind ${url} restarted, or several answer there (process_start_time_seconds was ${Math.min(before, started)} and ${Math.max(before, started)}); ${REMEDY}`,
        );
      }
    }
    if (last === undefined) throw new CouldNotRun("it needs the metrics of the service (--metrics-url)");
    const sum = (counter: Counter) =>
      pages.reduce((all, page) => [...seriesOf(page, counter).values()].reduce((a, b) => a + b, all), 0);
    return { pages, counts: { [REQUIRED]: sum(REQUIRED), [FAILED]: sum(FAILED) }, seen: last };
  }

  /**
   * Scrapes without any write in between. @throws CouldNotRun where several processes answer at one URL: their counts
   * differ from one scrape to the next, and neither is that of the service.
   * @param nudge causes one more event of each kind; given before a rule accuses
   */
  async needOneProcess(t: Scraper, nudge?: (via?: Connection) => Promise<unknown>): Promise<void> {
    if (this.#quiet && nudge === undefined) return;
    await this.#lookForSeveral(t);
    if (nudge === undefined) return;
    // Two processes may happen to show the same count: one more event tells them apart.
    await nudge();
    await this.#lookForSeveral(t);
    await this.#census(t, nudge);
  }

  /**
   * Where scrapes always reach one process, and requests another one by connection, plain refusals are counted over some
   * connections and not over others. @throws CouldNotRun then
   */
  async #census(t: Scraper, nudge: (via: Connection) => Promise<unknown>): Promise<void> {
    const each: Counts[] = [];
    for (let connection = 0; connection < CENSUS.connections; connection += 1) {
      const via = t.kit.wire.connect();
      const { rose } = await this.watch(t, async () => {
        for (let event = 0; event < CENSUS.each; event += 1) await nudge(via);
      });
      via.close();
      each.push(rose);
    }
    for (const counter of COUNTERS) {
      const counted = each.filter((rose) => rose[counter] >= CENSUS.each).length;
      const missed = each.filter((rose) => rose[counter] === 0).length;
      // A counter that loses some now and then misses no connection whole.
      if (counted > 0 && missed > 0 && counted + missed === CENSUS.connections)
        throw new CouldNotRun(
          `of equal refusals over ${CENSUS.connections} connections, ${counter} counted those of ${counted} and none of the others: several processes answer, and the metrics URL shows one of them; ${REMEDY}`,
        );
    }
  }

  async #lookForSeveral(t: Scraper): Promise<void> {
    const looks: Counts[] = [];
    for (let look = 0; look < QUIET_SCRAPES; look += 1) looks.push((await this.scrape(t)).counts);
    for (const counter of COUNTERS) {
      const values = looks.map((counts) => counts[counter]);
      const falls = values.filter(
        (value, index) => index > 0 && value < (values[index - 1] ?? 0) && value > 0,
      );
      if (falls.length > 0)
        throw new CouldNotRun(
          `${counter} went ${values.join(", ")} in ${QUIET_SCRAPES} scrapes without a write in between: several processes answer at one URL; ${REMEDY}`,
        );
    }
    this.#quiet = true;
  }

  /** Runs `act` between two scrapes. What was answered before it is given time to be counted, and so is what it caused. */
  async watch(t: Scraper, act: () => Promise<void>): Promise<Window> {
    const from = t.kit.wire.ledger.length;
    // Nothing was sent since the last look: it is as good as another.
    const fresh = this.#base?.from === from ? this.#base.counts : undefined;
    const before = fresh ?? (await this.#settled(t, this.#base)).counts;
    await act();
    return await this.#since(t, { counts: before, from });
  }

  /** From the first request of the run to now. @returns undefined where no metrics could be read at its start */
  async wholeRun(t: Scraper): Promise<Window | undefined> {
    return this.start === undefined ? undefined : await this.#since(t, this.start);
  }

  async #since(t: Scraper, mark: Mark): Promise<Window> {
    const answered = answeredSince(t, mark.from);
    const unclear = unclearSince(t, mark.from);
    const after = await this.#settled(t, mark);
    const rise = (counter: Counter) => after.counts[counter] - mark.counts[counter];
    const fell = COUNTERS.find((counter) => rise(counter) < 0);
    if (fell !== undefined) {
      const by = `${fell} fell by ${-rise(fell)} meanwhile`;
      // A restart would have shown.
      if (this.knowsStart) await this.#lookForSeveral(t);
      const found = `${by}, and the process did not restart (process_start_time_seconds)`;
      const { exchange } = after.seen;
      throw new CouldNotRun(
        `${by}: the process restarted, or several answer at one URL; ${REMEDY}`,
        ["MET-08"],
        this.knowsStart ? { breach: { exchange, allowed: "it never falls", found, certain: true } } : {},
      );
    }
    return { answered, unclear, rose: { [REQUIRED]: rise(REQUIRED), [FAILED]: rise(FAILED) }, after };
  }

  /**
   * Waits until all that was answered since the mark is counted, or the lag is over.
   * @throws Inconclusive where counters still rise after it, without a write: then no count can be said to be lost.
   */
  async #settled(t: Scraper, mark: Mark | undefined): Promise<Scrape> {
    // Once counts are known to be lost, others are waited for as long as any has taken, with a margin.
    const known = Math.max(KNOWN_LAG_MS, 3 * this.#slowestMs);
    const lagMs = this.#noneLater ? Math.min(known, lagMsOf(t)) : lagMsOf(t);
    const { scrape, complete } = await this.#awaited(t, mark, lagMs);
    this.#base = { counts: scrape.counts, from: t.kit.wire.ledger.length };
    if (complete || this.#noneLater) return scrape;
    if (this.#late === undefined) {
      const watchMs = t.kit.profile.metrics.lagMs ?? t.kit.options.counterWatchMs;
      const later = await this.#awaited(t, mark, watchMs, scrape.counts);
      this.#base = { counts: later.scrape.counts, from: t.kit.wire.ledger.length };
      this.#late = COUNTERS.find((counter) => later.scrape.counts[counter] > scrape.counts[counter]);
      if (this.#late === undefined) {
        this.#noneLater = true;
        return later.scrape;
      }
      await this.#lookForSeveral(t);
    }
    throw new Inconclusive(
      `${this.#late} still rises ${lagMs} ms after the last answer, so counts that are late can't be told from lost ones; raise lag-ms under [metrics] in the profile, or where several processes answer at one URL ${REMEDY}`,
    );
  }

  /** @param from returns too where a counter rises above these */
  async #awaited(t: Scraper, mark: Mark | undefined, forMs: number, from?: Counts) {
    const until = performance.now() + forMs;
    let pollMs = POLL_MS;
    for (;;) {
      const scrape = await this.scrape(t);
      const answered = mark === undefined ? undefined : answeredSince(t, mark.from);
      const complete = COUNTERS.every(
        (counter) => scrape.counts[counter] >= (mark?.counts[counter] ?? 0) + (answered?.[counter] ?? 0),
      );
      const risen = from !== undefined && COUNTERS.some((counter) => scrape.counts[counter] > from[counter]);
      if (complete && mark !== undefined)
        this.#slowestMs = Math.max(this.#slowestMs, performance.now() - until + forMs);
      if (complete || risen || performance.now() >= until) return { scrape, complete };
      await Bun.sleep(pollMs);
      pollMs = Math.min(2 * pollMs, POLL_MS_MAX);
    }
  }

  /** Where the run begins; metrics that cannot be read are the MET rules' to report. */
  async begin(t: Scraper): Promise<void> {
    try {
      const { counts } = await this.scrape(t);
      this.#base = this.start = { counts, from: t.kit.wire.ledger.length };
    } catch (error) {
      if (!(error instanceof CouldNotRun)) throw error;
    }
  }
}

export function lagMsOf({ kit }: Scraper): number {
  return kit.profile.metrics.lagMs ?? kit.options.counterLagMs;
}

/**
 * Every reply to a write counts, whichever request it came to: a deployment may answer otherwise than expected. A read
 * with If-Match may be answered 412 too (RFC 9110 13.1.1), and 7 rule 4, which speaks of write attempts, leaves open
 * whether that is counted.
 */
function answeredSince(t: Scraper, from: number): Counts {
  const replies = t.kit.wire.ledger.slice(from).filter(({ method }) => !/^(GET|HEAD)$/.test(method));
  const of = (status: number) => replies.filter((each) => each.status === status).length;
  return { [REQUIRED]: of(428), [FAILED]: of(412) };
}

function unclearSince(t: Scraper, from: number): Counts {
  const replies = t.kit.wire.ledger.slice(from);
  const lost = replies.filter(({ status }) => status === null || status >= 500).length;
  const of = (counted: number) =>
    lost + replies.filter(({ method, status }) => /^(GET|HEAD)$/.test(method) && status === counted).length;
  return { [REQUIRED]: of(428), [FAILED]: of(412) };
}

async function scrapeOne(t: Scraper, url: string): Promise<Seen> {
  const advice = "see --metrics-url and --metrics-header";
  let seen: Seen;
  try {
    seen = await t.send({
      purpose: "scrape",
      caller: "metrics",
      method: "GET",
      url,
      headers: [["Accept", "text/plain, */*;q=0.5"]],
      via: "socket",
    });
  } catch (error) {
    if (!(error instanceof NoReply)) throw error;
    throw new CouldNotRun(`the metrics at ${url} cannot be read: ${error.exchange.failure}; ${advice}`);
  }
  if (seen.status !== 200)
    throw new CouldNotRun(`the metrics at ${url} were answered ${seen.status}; ${advice}`);
  if (/^\s*[<{[]/.test(seen.text))
    throw new CouldNotRun(`what ${url} answers is HTML or JSON and no exposition of metrics; ${advice}`);
  return seen;
}
