/** AUT: roles and tenants (4.1.6, 5). */
import { customerOf, deciding, type Fault, isRead, type Plant, replying, withBody } from "../fault.ts";
import { isWrite, soundSeams } from "../service/seams.ts";

/** Lets a forbidden field through the policy and puts something in place of its value. */
function hiding(instead: (member: string) => Record<string, unknown>): Plant {
  return (ran) => (service) => {
    const sound = soundSeams(service.deployment);
    return {
      mayRead: (caller, field, spelled, request) =>
        spelled !== "" || sound.mayRead(caller, field, spelled, request),
      shape(customer, shown, caller, request) {
        const body = sound.shape(customer, shown, caller, request);
        if (caller !== "limited" || !shown.includes("email")) return body;
        ran();
        const { [service.deployment.members.email]: _hidden, ...rest } = body;
        return { ...rest, ...instead(service.deployment.members.email) };
      },
    };
  };
}

export const AUTHORIZATION_FAULTS: Fault[] = [
  {
    id: "forbidden-field-shown",
    rule: "AUT-02",
    does: "shows a forbidden field to every caller that requests it",
    plant: deciding("mayRead", (sound, ran) => (caller, field, spelled, request) => {
      const may = sound(caller, field, spelled, request);
      if (may || spelled === "") return may;
      ran();
      return true;
    }),
  },
  {
    id: "forbidden-field-shown-in-capitals",
    rule: "AUT-04",
    does: "compares the policy with the name as spelled: EMAIL is not in its deny list",
    plant: deciding("mayRead", (sound, ran) => (caller, field, spelled, request) => {
      const may = sound(caller, field, spelled, request);
      if (may || spelled === "" || spelled === spelled.toLowerCase()) return may;
      ran();
      return true;
    }),
  },
  {
    id: "forbidden-field-shown-in-list",
    rule: "AUT-03",
    does: "checks the policy when one field is requested, not when several are",
    plant: deciding("mayRead", (sound, ran, service) => (caller, field, spelled, request) => {
      const may = sound(caller, field, spelled, request);
      if (may || spelled === "" || (service.seams.fieldNames(request.query)?.length ?? 0) < 2) return may;
      ran();
      return true;
    }),
  },
  {
    id: "forbidden-field-in-default-set",
    rule: "AUT-05",
    does: "applies the policy to requested fields, not to the default set",
    plant: deciding("mayRead", (sound, ran) => (caller, field, spelled, request) => {
      const may = sound(caller, field, spelled, request);
      if (may || spelled !== "") return may;
      ran();
      return true;
    }),
  },
  {
    id: "forbidden-field-silently-omitted",
    rule: "AUT-01",
    does: "leaves a forbidden field out instead of refusing it",
    plant: hiding(() => ({})),
  },
  {
    id: "forbidden-field-null",
    rule: "AUT-01",
    does: "answers a forbidden field with null and 200",
    plant: hiding((name) => ({ [name]: null })),
  },
  {
    id: "forbidden-field-masked",
    rule: "AUT-01",
    does: "answers a forbidden field with asterisks and 200",
    plant: hiding((name) => ({ [name]: "***" })),
  },
  {
    id: "forbidden-field-500",
    rule: "AUT-01",
    does: "fails with 500 when a forbidden field is requested",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 403,
      () => ({ status: 500, headers: [], body: "" }),
    ),
  },
  {
    id: "forbidden-value-in-refusal",
    rule: "AUT-02",
    does: "names the value in the refusal: not allowed to read ada@example.org",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 403,
      (reply, request, service) =>
        withBody(reply, (body) => ({
          ...body,
          detail: `not allowed to read ${customerOf(request, service)?.email}`,
        })),
    ),
  },
  {
    id: "forbidden-field-in-put-answer",
    rule: "AUT-07",
    does: "answers a PUT with the whole customer, to every caller",
    deployment: { putAnswer: 200 },
    plant: (ran) => (service) => ({
      async around(request, next) {
        const reply = await next(request);
        if (request.method !== "PUT" || reply.status !== 200 || service.caller(request) !== "limited")
          return reply;
        ran();
        return withBody(reply, (body) => ({
          ...body,
          [service.deployment.members.email]: customerOf(request, service)?.email,
        }));
      },
    }),
  },
  {
    id: "forbidden-field-in-412",
    rule: "AUT-07",
    does: "puts the current customer into the 412 document, email included",
    plant: replying(
      (reply, request) => isWrite(request) && reply.status === 412,
      (reply, request, service) =>
        withBody(reply, (body) => ({ ...body, current: { Email: customerOf(request, service)?.email } })),
    ),
  },
];
