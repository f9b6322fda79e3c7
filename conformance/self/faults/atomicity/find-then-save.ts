/** ATM: check and update as two steps (4.2, last rule). */

import { customerOf, deciding, type Fault, membersOf, type Plant } from "../../fault.ts";
import { headerLines, type Request } from "../../service/http-socket.ts";
import type { Customer } from "../../service/seams.ts";
import type { Service } from "../../service/service.ts";
import { checkedTwice, gap } from "../../two-steps.ts";

/** Compares, lets others pass, and writes whatever has become of the customer. */
const findThenSave = (
  methods?: RegExp,
  when: (request: Request, service: Service) => boolean = () => true,
): Plant =>
  checkedTwice(
    (_refusal, attempt, service) => (when(attempt.request, service) ? attempt.apply() : undefined),
    methods,
  );

/** Compares, lets others pass, and writes whatever has become of the customer, where its body is such a one. */
const unlocked = (
  methods: RegExp,
  when: (sent: unknown[], customer: Customer, members: object) => boolean,
): Plant =>
  deciding("commit", (sound, ran, service) => async (attempt) => {
    await attempt.bodyRead();
    const customer = customerOf(attempt.request, service);
    const members = await membersOf(attempt.request);
    const sent = Object.values(members);
    if (!methods.test(attempt.request.method) || customer === undefined || !when(sent, customer, members))
      return await sound(attempt);
    const refusal = attempt.decide();
    if (refusal !== undefined) return refusal;
    await gap(2);
    if (attempt.decide() !== undefined) ran();
    return attempt.apply();
  });

export const FIND_THEN_SAVE_FAULTS: Fault[] = [
  {
    id: "equal-values-saved-without-the-check",
    mode: "full",
    rule: "ATM-01",
    does: "compares the version where it finds changed columns, and finds none in a PUT of the stored values",
    plant: unlocked(/PUT/, (sent, { name, email }) => Bun.deepEquals(sent, [name, email])),
  },
  {
    id: "put-finds-then-saves",
    rule: "ATM-01",
    does: "reads the row, compares, and saves it a moment later",
    plant: findThenSave(/PUT/),
  },
  {
    id: "patch-finds-then-saves",
    rule: "ATM-03",
    does: "merges a PATCH in memory and saves it a moment later",
    plant: findThenSave(/PATCH/),
  },
  {
    id: "delete-finds-then-deletes",
    rule: "ATM-04",
    does: "compares, then deletes whatever version is there",
    plant: findThenSave(/DELETE/),
  },
  {
    id: "all-find-then-save",
    rule: "ATM-01",
    does: "separates check and update on every method",
    plant: findThenSave(),
  },
  {
    id: "checks-before-body",
    rule: "ATM-05",
    does: "compares when the head of a request is here and applies when its body is",
    plant: deciding("commit", (_sound, ran) => async (attempt) => {
      const early = attempt.decide();
      await attempt.bodyRead();
      if (early !== undefined) return early;
      const late = attempt.decide();
      if (late !== undefined && late.status !== 412) return late;
      if (late !== undefined) ran();
      return attempt.apply();
    }),
  },
  {
    id: "two-winners-one-tag",
    rule: "ATM-01",
    does: "computes the next version from the one it read, so that two winners share a tag",
    plant: (ran) => (service) => {
      let read = 0;
      return {
        async commit(attempt) {
          await attempt.bodyRead();
          const refusal = attempt.decide();
          if (refusal !== undefined) return refusal;
          const version = customerOf(attempt.request, service)?.formerTags.length ?? 0;
          await gap(2);
          if (attempt.decide() !== undefined) ran();
          read = version + 1;
          return attempt.apply();
        },
        mint: (_version, before, after) => `"${after.id.slice(0, 8)}.${before === undefined ? 0 : read}"`,
      };
    },
  },
  {
    id: "long-bodies-found-then-saved",
    rule: "ATM-01",
    mode: "full",
    does: "reads a body above a kilobyte after it compared, and saves whatever has become of the customer",
    plant: findThenSave(/PUT/, (request) => Number(headerLines(request, "content-length")[0]) > 1000),
  },
  {
    id: "limited-finds-then-saves",
    rule: "ATM-01",
    mode: "full",
    does: "has a second endpoint for another role, without a transaction",
    plant: findThenSave(/PUT/, (request, service) => service.caller(request) === "limited"),
  },
  {
    id: "new-tenant-finds-then-saves",
    mode: "full",
    rule: "ATM-01",
    does: "has moved one tenant to a database of its own, whose driver opens no transaction",
    plant: findThenSave(/PUT/, (request, service) => service.caller(request) === "other"),
  },
  {
    id: "limited-patch-finds-then-saves",
    rule: "ATM-03",
    mode: "full",
    does: "has a second PATCH for another role, without a transaction",
    plant: findThenSave(/PATCH/, (request, service) => service.caller(request) === "limited"),
  },
  {
    id: "chunked-bodies-found-then-saved",
    rule: "ATM-01",
    mode: "full",
    does: "streams a body in chunks into the row after it compared",
    plant: findThenSave(/PUT/, (request) => headerLines(request, "transfer-encoding").length > 0),
  },
  {
    id: "limited-checked-before-body",
    rule: "ATM-05",
    mode: "full",
    does: "compares the version of a limited caller's write in the filter of its role, before the body comes",
    plant: deciding("commit", (sound, ran, service) => async (attempt) => {
      if (service.caller(attempt.request) !== "limited") return await sound(attempt);
      const early = attempt.decide();
      await attempt.bodyRead();
      if (early !== undefined) return early;
      if (attempt.decide()?.status === 412) ran();
      return attempt.apply();
    }),
  },
  {
    id: "delete-checked-before-body",
    rule: "ATM-05",
    mode: "full",
    does: "compares the version of a DELETE in a filter, and deletes by id once the body that a client sends has come",
    plant: deciding("commit", (sound, ran) => async (attempt) => {
      if (attempt.request.method !== "DELETE") return await sound(attempt);
      const early = attempt.decide();
      await attempt.bodyRead();
      if (early !== undefined) return early;
      if (attempt.decide()?.status === 412) ran();
      return attempt.apply();
    }),
  },
  {
    id: "unchanged-email-finds-then-saves",
    rule: "ATM-01",
    mode: "full",
    does: "checks under the unique index of the email, and saves a PUT that keeps the email without it",
    plant: unlocked(/PUT/, (sent, customer) => sent.some((value) => value === customer.email)),
  },
  {
    id: "accents-find-then-save",
    rule: "ATM-01",
    mode: "full",
    does: "sends names beyond ASCII through another driver call, which has no transaction",
    plant: unlocked(/PUT/, (sent) => sent.some((value) => /[^ -~]/.test(String(value)))),
  },
  {
    id: "patch-of-two-fields-finds-then-saves",
    rule: "ATM-03",
    mode: "full",
    does: "updates one field with one guarded statement, and several by reading and saving the row",
    plant: unlocked(/PATCH/, (sent) => sent.length > 1),
  },
  {
    id: "patch-of-status-finds-then-saves",
    rule: "ATM-03",
    mode: "full",
    does: "moves the status on in code of its own, which reads the row and saves it",
    plant: unlocked(/PATCH/, (_sent, _customer, members) => Object.keys(members).join() === "Status"),
  },
];
