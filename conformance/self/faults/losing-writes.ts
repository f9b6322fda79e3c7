/** One path alone: what those are answered who lost a race, and nothing else. */
import { customerOf, type Fault } from "../fault.ts";
import { planted } from "../narrow.ts";
import { headerLines, type Reply, type Request } from "../service/http-socket.ts";
import type { Service } from "../service/service.ts";
import { DROP, meeting, old } from "./narrow-races.ts";

/** Whose races: those of the customer of the whole run by method, or of new ones by whether a PUT takes part. */
const RACES = {
  "ATM-02": (method: string, isOld: boolean) => isOld && method === "PUT",
  "ATM-03": (method: string, isOld: boolean) => isOld && method === "PATCH",
  "ATM-04": (_method: string, isOld: boolean, withPut: boolean) => !isOld && withPut,
  "ATM-07": (_method: string, isOld: boolean, withPut: boolean) => !isOld && !withPut,
} as const;

/** @param answer what the nth loser of a race gets, from 1; undefined: what it should. */
function losing(
  rule: keyof typeof RACES,
  assertion: string,
  does: string,
  answer: (service: Service, place: number) => Reply | undefined,
): Fault {
  return planted(`${rule}.${assertion}`, does, (ran) => (service) => {
    const withPut = new Set<string>();
    /** Who sent the tag that was current when they came; others are stale from the start. */
    const inTime = new WeakSet<Request>();
    const places = new Map<string, number>();
    return {
      around(request, next) {
        if (request.method === "PUT") withPut.add(request.path);
        const tag = customerOf(request, service)?.tag;
        if (headerLines(request, "if-match")[0]?.trim() === tag) inTime.add(request);
        return next(request);
      },
      ...meeting(({ attempt, met }) => {
        const { path, method } = attempt.request;
        const refusal = attempt.decide();
        if (refusal === undefined) {
          places.set(path, 0);
          return attempt.apply();
        }
        const customer = customerOf(attempt.request, service);
        if (!met() || !inTime.has(attempt.request) || !RACES[rule](method, old(customer), withPut.has(path)))
          return refusal;
        const place = (places.get(path) ?? 0) + 1;
        places.set(path, place);
        const instead = answer(service, place);
        if (instead !== undefined) ran();
        return instead ?? refusal;
      })(ran)(service),
    };
  });
}

export const RACE_LOSER_FAULTS: Fault[] = (Object.keys(RACES) as (keyof typeof RACES)[]).flatMap((rule) => [
  losing(rule, "status", "answers who lost a race with 409", (service) => service.refuse(409, "conflict")),
  losing(rule, "told", "drops the connections of all who lost a race", () => DROP),
  losing(rule, "available", "is not available to the first who lost a race", (service, place) =>
    place === 1 ? service.refuse(503, "busy") : undefined,
  ),
]);
