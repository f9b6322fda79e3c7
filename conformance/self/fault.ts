/**
 * A fault: one thing that a real service gets wrong, planted into the sound one. It is data, and code that says when
 * it ran, since a fault whose code never ran proves nothing. Which assertions it trips stands in golden.json.
 */

import { headerLines, type Request } from "./service/http-socket.ts";
import type { Customer, Seams } from "./service/seams.ts";
import { soundSeams } from "./service/seams.ts";
import type { Faulty, Service } from "./service/service.ts";
import type { Deployment } from "./service/sound-options.ts";

/** Told each time that the faulty code did something that the sound one would not have done. */
type Ran = () => void;

export type Plant = (ran: Ran) => Faulty;

export type Fault = {
  /** Permanent, kebab-case. */
  id: string;
  /** `quick`, unless told: what only a full run looks at needs one. */
  mode?: "quick" | "full";
  /** The rule that it breaks first: one of those that fire, unless the kit misses the fault. */
  rule: string;
  /** Which of its requests meets which rule is chance: something must fire, and nobody says what. */
  comesAndGoes?: boolean;
  /** Rules that a short run adds: without their requests the fault does not come about, or is not seen. */
  alsoRun?: readonly string[];
  /** What the service does, in one line. */
  does: string;
  /** Where it shows only on another deployment than the plain one. */
  deployment?: Partial<Deployment>;
  /** The profile does not name the field that the limited caller may not read. */
  deniedUnnamed?: boolean;
  plant: Plant;
};

/** Takes more If-Match values for current than the one that is. */
export function accepting(
  wrongly: (sent: string, customer: Customer, request: Request, service: Service) => boolean,
): Plant {
  return (ran) => (service) => ({
    isCurrent(sent, customer, request) {
      if (sent === customer.tag) return true;
      const accepted = wrongly(sent, customer, request, service);
      if (accepted) ran();
      return accepted;
    },
  });
}

/** Changes some requests on their way in. */
export function requesting(
  when: (request: Request, service: Service) => boolean,
  change: (request: Request, service: Service) => Request,
): Plant {
  return (ran) => (service) => ({
    around(request, next) {
      if (!when(request, service)) return next(request);
      ran();
      return next(change(request, service));
    },
  });
}

/** Writes that are taken to carry the current tag. */
export const asCurrent = (when: (request: Request, service: Service) => boolean): Plant =>
  requesting(
    (request, service) => customerOf(request, service) !== undefined && when(request, service),
    (request, service) => withIfMatch(request, customerOf(request, service)?.tag),
  );

type Decision = Exclude<keyof Seams, "commit" | "around" | "store">;
type Decisions = { [K in Decision]: (...args: Parameters<Seams[K]>) => ReturnType<Seams[K]> };

/** Changes what one decision comes to; `sound` is what it would have been. */
export const instead =
  <K extends Decision>(
    seam: K,
    wrong: (sound: ReturnType<Seams[K]>, ...args: [...Parameters<Seams[K]>, Service]) => ReturnType<Seams[K]>,
  ): Plant =>
  (ran) =>
  (service) => {
    const decisions: Decisions = soundSeams(service.deployment);
    const decide = (...args: Parameters<Seams[K]>) => {
      const sound = decisions[seam](...args);
      let differs = true;
      try {
        const decided = wrong(sound, ...args, service);
        differs = !Bun.deepEquals(decided, sound);
        return decided;
      } finally {
        if (differs) ran();
      }
    };
    return { [seam]: decide } as Partial<Seams>;
  };

/** Replaces one decision; `sound` is what it would have been. */
export function deciding<K extends keyof Seams>(
  seam: K,
  make: (sound: Seams[K], ran: Ran, service: Service) => Seams[K],
): Plant {
  return (ran) => (service) =>
    ({ [seam]: make(soundSeams(service.deployment)[seam], ran, service) }) as Partial<Seams>;
}

export const isCustomer = (request: Request): boolean => /\/customers\/[^/]+$/.test(request.path);
export const isRead = (request: Request): boolean =>
  isCustomer(request) && /^(GET|HEAD)$/.test(request.method);

export function customerOf(request: Request, service: Service): Customer | undefined {
  return service.customers.get(request.path.slice(request.path.lastIndexOf("/") + 1).toLowerCase());
}

/** Requests with such a header, whose value holds this, in small letters. */
export const has =
  (name: string, value = "") =>
  (request: Request): boolean => {
    const sent = headerLines(request, name).join().toLowerCase();
    return sent !== "" && sent.includes(value);
  };

/** An If-Match header in place of those that were sent; undefined sends none. */
export function withIfMatch(request: Request, value: string | undefined): Request {
  const headers = request.headers.filter(([name]) => name.toLowerCase() !== "if-match");
  return { ...request, headers: value === undefined ? headers : [...headers, ["If-Match", value]] };
}

/** The members of a JSON body; none where it is no JSON object. */
export async function membersOf(request: Request): Promise<Record<string, unknown>> {
  try {
    const json: unknown = JSON.parse((await request.body()).toString("utf8"));
    return typeof json === "object" && json !== null ? (json as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
