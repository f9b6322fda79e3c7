/** A request and what the sound service made of it: what a fault needs that errs in one situation. */
import { customerOf, type Fault, isCustomer, membersOf } from "./fault.ts";
import { headerLines, type Reply, type Request } from "./service/http-socket.ts";
import { type Customer, trimBlanks } from "./service/seams.ts";
import type { Service } from "./service/service.ts";

export type Turn = {
  readonly request: Request;
  readonly reply: Reply;
  readonly service: Service;
  readonly caller: ReturnType<Service["caller"]>;
  /** The customer as it was when the request came; undefined where there never was one. */
  readonly before: Customer | undefined;
  /** If-Match without the blanks around it; undefined where there was none. */
  readonly sent: string | undefined;
  /** Another request for the same customer was under way meanwhile. */
  readonly met: boolean;
  /** Members of the body; none where it is no JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Carries a request out after all. */
  readonly send: (request: Request) => Promise<Reply>;
};

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

export type Row = Omit<Fault, "plant"> & {
  readonly when: (turn: Turn) => boolean;
  readonly act: (turn: Turn) => Reply | Promise<Reply>;
};

/** A fault of one situation: the sound service has answered, and what is told instead may differ. */
export function inOneCase({ when, act, ...fault }: Row): Fault {
  return {
    ...fault,
    plant: (ran) => (service) => {
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
    },
  };
}

/** Stores values behind the service's back, under a new tag. */
export function overwrite({ request, service }: Turn, values: Partial<Customer>): void {
  const customer = customerOf(request, service);
  if (customer === undefined) return;
  customer.formerTags.push(customer.tag);
  Object.assign(customer, values, { tag: service.deployment.tag(service.nextVersion(), customer.id) });
}
