/** A request and what the sound service made of it: what a fault needs that answers or stores something else. */
import { customerOf, isCustomer, isRead, membersOf, type Plant } from "./fault.ts";
import { getHeader, headerLines, type Reply, type Request, setHeader } from "./service/http-socket.ts";
import { type Customer, isWrite, trimBlanks } from "./service/seams.ts";
import type { Service } from "./service/service.ts";

export type Turn = {
  readonly request: Request;
  readonly reply: Reply;
  readonly service: Service;
  readonly caller: ReturnType<Service["caller"]>;
  /** The customer as it was when the request came; undefined where there never was one. */
  readonly before: Customer | undefined;
  /** The customer as it is now, to be spoiled. */
  readonly customer: Customer | undefined;
  /** If-Match without the blanks around it; undefined where there was none. */
  readonly sent: string | undefined;
  /** Another request for the same customer was under way meanwhile. */
  readonly met: boolean;
  /** Members of the body of a PUT or PATCH; none where it is no JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Carries a request out after all. */
  readonly send: (request: Request) => Promise<Reply>;
};

export type When = (turn: Turn) => boolean;
export type Act = (turn: Turn) => Reply | Promise<Reply>;

/** Requests under way at each address. */
class Crowd {
  readonly #under = new Map<string, Set<{ met: boolean }>>();

  enter(path: string): { met: boolean; leave: () => void } {
    const all = this.#under.get(path) ?? new Set();
    const mine = { met: false, leave: () => void all.delete(mine) };
    this.#under.set(path, all.add(mine));
    if (all.size > 1) for (const each of all) each.met = true;
    return mine;
  }
}

/** Where all of these hold, something else is answered than the sound service has. */
export const on = (...when: When[]) => ({ answers: (act: Act): Plant => spoiled(all(...when), act) });

const spoiled =
  (when: When, act: Act): Plant =>
  (ran) =>
  (service) => {
    const crowd = new Crowd();
    return {
      async around(request, next) {
        if (!isCustomer(request)) return await next(request);
        const customer = customerOf(request, service);
        const before = customer && { ...customer, formerTags: [...customer.formerTags] };
        const lines = headerLines(request, "if-match");
        const mine = crowd.enter(request.path);
        try {
          const reply = await next(request);
          const turn: Turn = {
            request,
            reply,
            service,
            caller: service.caller(request),
            before,
            customer: customerOf(request, service),
            sent: lines.length === 0 ? undefined : trimBlanks(lines.join(", ")),
            met: mine.met,
            body: /PUT|PATCH/.test(request.method) ? await membersOf(request) : {},
            send: next,
          };
          if (!when(turn)) return reply;
          ran();
          return await act(turn);
        } finally {
          mine.leave();
        }
      },
    };
  };

export const all =
  (...tests: When[]): When =>
  (turn) =>
    tests.every((test) => test(turn));
export const by =
  (...callers: Turn["caller"][]): When =>
  ({ caller }) =>
    callers.includes(caller);
/** A read of a customer that was answered so. */
export const read =
  (status = 200): When =>
  ({ request, reply }) =>
    isRead(request) && reply.status === status;
export const byHead: When = ({ request }) => request.method === "HEAD";
export const wholeRead: When = (turn) => read()(turn) && turn.request.query === "";
export const projectedRead: When = (turn) => read()(turn) && /(^|&)fields=/.test(turn.request.query);
/** A write that was answered so, or accepted where no status is told. */
export const write =
  (method: string | undefined, status?: number): When =>
  ({ request, reply }) =>
    (method === undefined ? isWrite(request) : request.method === method) &&
    (status === undefined ? reply.status < 300 : reply.status === status);
/** A read or write that was answered so. */
export const answered =
  (status: number): When =>
  ({ reply }) =>
    reply.status === status;
export const neverThere: When = ({ before }) => before === undefined;
export const isThere: When = ({ before }) => before?.removed === false;
export const withCurrentTag: When = (turn) => isThere(turn) && turn.sent === turn.before?.tag;

/** Says yes to every nth that it is asked about. */
export function every(n: number): () => boolean {
  let count = 0;
  return () => {
    count += 1;
    return count % n === 0;
  };
}

/** A refusal, whatever was done. */
export const refused =
  (status: number, code = "refused"): Act =>
  ({ service }) =>
    service.refuse(status, code);
export const empty =
  (status: number): Act =>
  () => ({ status, headers: [], body: "" });
export const object = (body: unknown, tag?: string): Reply => ({
  status: 200,
  headers: [
    ...(tag === undefined ? [] : [["ETag", tag] as [string, string]]),
    ["Content-Type", "application/json"],
  ],
  body: JSON.stringify(body),
});
/** The answer under another status. */
export const as =
  (status: number, body?: string): Act =>
  ({ reply }) => ({ ...reply, status, ...(body === undefined ? {} : { body }) });
/** The answer under another tag, or none. */
export const tagged =
  (tag: (turn: Turn) => string | undefined): Act =>
  (turn) =>
    setHeader(turn.reply, "ETag", tag(turn));
export const untagged = tagged(() => undefined);
export const weakened = tagged(({ reply }) => `W/${getHeader(reply, "etag")}`);
/** The answer with another body. */
export const showing =
  (change: (body: Record<string, unknown>, turn: Turn) => unknown): Act =>
  (turn) => ({ ...turn.reply, body: JSON.stringify(change(JSON.parse(String(turn.reply.body)), turn)) });
/** The same answer, after something was done to the customer. */
export const spoiling =
  (spoil: (customer: Customer, turn: Turn) => Partial<Customer>): Act =>
  (turn) => {
    if (turn.customer !== undefined) Object.assign(turn.customer, spoil(turn.customer, turn));
    return turn.reply;
  };
/** The tag of one more version. */
export const newTag = ({ id }: Customer, { service }: Turn) =>
  service.deployment.tag(service.nextVersion(), id);

/** Stores values behind the service's back, under a new tag. */
export const overwriting = (values: (turn: Turn) => Partial<Customer>): Act =>
  spoiling((customer, turn) => ({
    ...values(turn),
    formerTags: [...customer.formerTags, customer.tag],
    tag: newTag(customer, turn),
  }));

/** The same answer, and what would have been done at once is done later. */
export const later =
  (ms: number, act: Act): Act =>
  (turn) => {
    setTimeout(() => void act(turn), ms);
    return turn.reply;
  };
