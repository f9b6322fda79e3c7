import type { Fault } from "../fault.ts";
import { onPath, planted, type Turn } from "../narrow.ts";
import { asked, revealing, showing } from "./narrow-reads.ts";

export const NARROW_CALLER_FAULTS: Fault[] = [
  onPath({
    cause: "AUT-01.refused",
    does: "answers a limited caller that asks for the email alone with an empty object",
    when: asked("fields=email", "limited", 403),
    act: ({ before }) => ({
      status: 200,
      headers: [
        ["ETag", before?.tag ?? ""],
        ["Content-Type", "application/json"],
      ],
      body: "{}",
    }),
  }),
  onPath({
    cause: "AUT-02.no-value",
    does: "names the email in the refusal of the email alone",
    when: asked("fields=email", "limited", 403),
    act: revealing("detail", "email"),
  }),
  onPath({
    cause: "AUT-03.refused",
    does: "leaves the email out when id and email are asked for by a limited caller",
    when: asked("fields=id,email", "limited", 403),
    act: ({ before }) => ({
      status: 200,
      headers: [
        ["ETag", before?.tag ?? ""],
        ["Content-Type", "application/json"],
      ],
      body: JSON.stringify({ Id: before?.id }),
    }),
  }),
  onPath({
    cause: "AUT-03.no-value",
    does: "names the email in the refusal of id and email",
    when: asked("fields=id,email", "limited", 403),
    act: revealing("detail", "email"),
  }),
  onPath({
    cause: "AUT-05.no-member",
    does: "shows a masked email in the default set of a limited caller",
    when: asked("", "limited"),
    act: showing((body) => ({ ...body, Email: "a***@example.org" })),
  }),
  onPath({
    cause: "AUT-05.no-value",
    does: "shows the email as login in the default set of a limited caller",
    when: asked("", "limited"),
    act: revealing("Login", "email"),
  }),
  onPath({
    cause: "AUT-08.refused",
    does: "answers another tenant's full read with an empty object",
    when: asked("", "other", 404),
    act: () => ({ status: 200, headers: [["Content-Type", "application/json"]], body: "{}" }),
  }),
  onPath({
    cause: "AUT-08.no-values",
    does: "names the customer in the 404 to another tenant that asks for the name",
    when: asked("fields=name", "other", 404),
    act: revealing("detail", "name"),
  }),
  planted(
    "AUT-08.owner-unaffected",
    "caches the 404 to another tenant and hands it to the owner",
    (ran) => (service) => {
      const refused = new Set<string>();
      return {
        async around(request, next) {
          const caller = service.caller(request);
          const key = `${request.path}?${request.query}`;
          if (request.method === "GET" && caller === "main" && refused.delete(key)) {
            ran();
            return service.refuse(404, "not-found");
          }
          const reply = await next(request);
          if (asked("fields=name", "other", 404)({ request, reply, service } as Turn)) refused.add(key);
          return reply;
        },
      };
    },
  ),
];
