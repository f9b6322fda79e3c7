/**
 * The environment of a sound service that fails: restarts, firewalls, expired credentials, tired gateways. Such answers
 * say nothing about a rule, so no run may accuse the service.
 */
import { isCustomer } from "./fault.ts";
import type { Reply, Request } from "./service/http-socket.ts";
import type { Faulty } from "./service/service.ts";

export type Weather = {
  readonly id: string;
  readonly does: string;
  /** `lost`: the connection ends without an answer. */
  readonly status: number | "lost";
  /** Whether the nth request to customers is answered so; `chance` is in [0, 1) and drawn for each. */
  readonly hits: (n: number, moment: number, chance: number) => boolean;
  /** The service carries the request out all the same; the answer is lost on the way back. */
  readonly carriedOut?: boolean;
};

const STATUSES = [401, 403, 429, 500, 502, 503, 504] as const;
const BURST = 30;

export const WEATHERS: readonly Weather[] = [
  ...STATUSES.map(
    (status): Weather => ({
      id: `burst-${status}`,
      does: `answers ${BURST} requests in a row with ${status}`,
      status,
      hits: (n, moment) => n >= moment && n < moment + BURST,
    }),
  ),
  ...STATUSES.map(
    (status): Weather => ({
      id: `some-${status}`,
      does: `answers one request in a hundred with ${status}`,
      status,
      hits: (_n, _moment, chance) => chance < 0.01,
    }),
  ),
  ...([502, 503, 504] as const).map(
    (status): Weather => ({
      id: `lost-answers-${status}`,
      does: `loses one answer in a hundred and says ${status}; the request was carried out`,
      status,
      hits: (_n, _moment, chance) => chance < 0.01,
      carriedOut: true,
    }),
  ),
  ...([401, 403, 503] as const).map(
    (status): Weather => ({
      id: `from-then-on-${status}`,
      does: `answers everything with ${status} from some moment on`,
      status,
      hits: (n, moment) => n >= moment,
    }),
  ),
  ...[false, true].map(
    (carriedOut): Weather => ({
      id: carriedOut ? "lost-answers" : "lost-requests",
      does: `loses one connection in a hundred; the request was ${carriedOut ? "carried out" : "never received"}`,
      status: "lost",
      hits: (_n, _moment, chance) => chance < 0.01,
      carriedOut,
    }),
  ),
  {
    id: "every-second-502",
    does: "answers every second request with 502 from some moment on: one of two replicas is gone",
    status: 502,
    hits: (n, moment) => n >= moment && n % 2 === 0,
  },
];

/** Where in a run the weather turns: after set-up, and before the shortest run ends. */
const FIRST = 60;
const LAST = 2000;

export function blowing({ id, status, hits, carriedOut = false }: Weather, seed: number): Faulty {
  let state = Bun.hash.crc32(`${id} ${seed}`);
  const chance = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  chance();
  const moment = FIRST + Math.floor(chance() * (LAST - FIRST));
  let n = 0;
  return () => ({
    async around(request: Request, next: (request: Request) => Promise<Reply>): Promise<Reply> {
      if (!isCustomer(request)) return await next(request);
      n += 1;
      if (n < FIRST || !hits(n, moment, chance())) return await next(request);
      if (carriedOut) await next(request);
      if (status === "lost") return { status: 0, headers: [], raw: Buffer.alloc(0), hangUp: true };
      const headers: Reply["headers"] =
        status === 429
          ? [
              ["Retry-After", "0"],
              ["RateLimit", '"default";r=0;t=1'],
            ]
          : [];
      return { status, headers, body: "" };
    },
  });
}
