/** From a base URL to a customer that can be tested: is anybody there, are we let in, what does it look like. */

import { headerValue } from "../http/http-reply.ts";
import { CouldNotRun, NoReply, Unreachable } from "../http/outcome-signal.ts";
import { isGone } from "../http/status.ts";
import { type Ask, ownAsk, type Seen } from "../http/wire.ts";
import { Counters } from "../probe/counters/counters.ts";
import type { Kit } from "../probe/kit.ts";
import { Weather } from "../probe/weather.ts";

/** Where every read lags, each rule waits for many of them: a cache of 2 s made a short run take 150 s. */
const LAG_RUN_MS = { quick: 10_000, full: 60_000 } as const;

type Parts = Omit<
  Kit,
  | "main"
  | "blamed"
  | "doubts"
  | "violated"
  | "limits"
  | "weather"
  | "counters"
  | "refusedEarly"
  | "readEarly"
  | "untouched"
>;

export async function prepare(parts: Parts): Promise<Kit> {
  const { ground, deployment, options } = parts;
  const stranger = await knock(parts);
  const [given] = ground.given();
  if (given === undefined && options.mode === "read-only")
    throw new CouldNotRun("--read-only makes no customer: give one by --customer-id");
  const main = given ?? (await firstMade(parts));
  const first = await ground.firstRead(main);
  if (first.status === 401 || first.status === 403) throw refused(first);
  if (given === undefined && isGone(first.status))
    throw new Unreachable(
      `the id that create answered is not found: GET ${new URL(main.url).pathname} answered ${first.status} (is the base URL right? Else give --customer-id)`,
    );
  if (given !== undefined && first.status === 404)
    throw new Unreachable(
      `the given customer ${given.id} is not there: GET answered 404 (are the base URL and --customer-id right?)`,
    );
  if (given !== undefined) tellsApart(first, stranger);
  const kit: Kit = {
    ...parts,
    main,
    blamed: new Map(),
    doubts: new Set(),
    violated: new Set(),
    limits: {
      connections: Number.POSITIVE_INFINITY,
      lagMs: LAG_RUN_MS[options.mode === "quick" ? "quick" : "full"],
    },
    weather: new Weather(parts.wire, main.url, first.status, options.patienceMs),
    counters: new Counters(),
    refusedEarly: [],
    readEarly: [],
  };
  // A read without object or tag is ETG-01's to blame; nothing can be learned from it.
  if (first.status !== 200 || first.object === undefined) return kit;
  await deployment.learnReads(main, first);
  if (options.mode !== "read-only" && first.tag !== undefined) {
    ground.borrow(main, first.object, deployment.names);
    await deployment.learnPut(main, first.tag);
  }
  return kit;
}

/** The first contact: an id that nobody has. */
async function knock({ wire, ground, profile }: Parts): Promise<Seen> {
  let seen: Seen;
  const ask: Ask = ownAsk("is anybody there", "GET", ground.missing().url);
  try {
    // Over a connection of its own: whether one may be used twice is not known yet.
    seen = await wire.send({ ...ask, via: "socket" });
  } catch (error) {
    if (error instanceof NoReply)
      throw new Unreachable(`${profile.baseUrl} can't be reached: ${error.exchange.failure}`);
    throw error;
  }
  await wire.adaptToClosing(ask);
  if (seen.status === 401) throw refused(seen);
  if (seen.status >= 300 && seen.status < 400)
    throw new Unreachable(
      `${profile.baseUrl} redirects to ${headerValue(seen.headers, "location") ?? "nowhere"} (${seen.status})`,
    );
  return seen;
}

/**
 * A customer that was made proves that a service is there; one that was given does not.
 * @throws Unreachable where the read of it is answered like that of a customer that nobody has, and by no customer: a
 * login page, an echo, a gateway that is down.
 */
function tellsApart(first: Seen, stranger: Seen): void {
  if (first.status !== stranger.status || (first.status === 200 && first.object !== undefined)) return;
  const html = /^\s*</.test(first.text) ? "HTML; " : "";
  throw new Unreachable(
    `something else than the service answers (${html}a wrong base URL?): GET of the given customer and of one that nobody has are both answered ${first.status}${first.status === 200 ? " without a JSON object" : ""}`,
  );
}

function refused(seen: Seen): Unreachable {
  const none = seen.exchange.request.headers.length <= 2 ? "; no credentials are configured (--header)" : "";
  return new Unreachable(
    `the service refuses our credentials: ${seen.exchange.request.method} answered ${seen.status}${none}`,
  );
}

async function firstMade({ ground }: Parts) {
  try {
    return await ground.make();
  } catch (error) {
    if (!(error instanceof CouldNotRun)) throw error;
    const { created } = ground;
    if (created?.status === 401 || created?.status === 403) throw refused(created);
    if (created !== undefined && /^\s*</.test(created.text))
      throw new Unreachable(
        `something else than the service answers (HTML; a wrong base URL?): ${error.message}`,
      );
    throw error;
  }
}
