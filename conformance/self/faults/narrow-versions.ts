/** One path alone: when the tag changes, and what an accepted write does. */
import { customerOf, type Fault } from "../fault.ts";
import { onPath, planted, quietWrite } from "../narrow.ts";
import { setHeader } from "../service/http-socket.ts";
import { EMAIL, NAME, quietPut, unstored } from "./narrow-writes.ts";

export const NARROW_VERSION_FAULTS: Fault[] = [
  planted("IFM-01.applied-name", "forgets the name of a quiet PUT", unstored("name")),
  planted("IFM-01.applied-email", "forgets the email of a quiet PUT", unstored("email")),
  onPath({
    cause: "IFM-30.applied",
    does: "forgets the name of a quiet PATCH",
    when: (turn) => quietWrite(turn, "PATCH") && turn.reply.status === 204,
    act: ({ request, reply, before, service }) => {
      const customer = customerOf(request, service);
      if (customer !== undefined && before !== undefined) customer.name = before.name;
      return reply;
    },
  }),
  onPath({
    cause: "IFM-02.body",
    does: "answers a PUT with 200 and nothing",
    when: ({ request, reply }) => request.method === "PUT" && reply.status === 204,
    act: ({ reply }) => ({ ...reply, status: 200, body: "" }),
  }),
  planted("IFM-40.effect", "answers a quiet DELETE with 204 and leaves the customer", (ran) => (service) => {
    let open = 0;
    return {
      async commit({ request, bodyRead, decide, apply }) {
        open += 1;
        try {
          await bodyRead();
          for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve));
          const refusal = decide();
          if (refusal !== undefined || request.method !== "DELETE" || open > 1) return refusal ?? apply();
          if (customerOf(request, service)?.formerTags.length !== 0) return apply();
          ran();
          return { status: 204, headers: [] };
        } finally {
          open -= 1;
        }
      },
    };
  }),
  onPath({
    cause: "ETG-07.etag-current",
    does: "answers a quiet PUT with the tag of before it",
    when: quietPut,
    act: ({ reply, before }) => setHeader(reply, "ETag", before?.tag),
  }),
  planted("ETG-15.moves", "keeps the tag on the fifth PUT that follows two reads", (ran) => (service) => {
    let reads = 0;
    let puts = 0;
    return {
      async around(request, next) {
        const customer = customerOf(request, service);
        const before = customer?.tag;
        const reply = await next(request);
        if (request.method === "GET" && request.query === "") reads += 1;
        else {
          puts = reads === 2 && request.method === "PUT" && reply.status === 204 ? puts + 1 : 0;
          reads = 0;
        }
        if (puts !== 5 || reads > 0 || customer === undefined || before === undefined) return reply;
        ran();
        customer.tag = before;
        return setHeader(reply, "ETag", before);
      },
    };
  }),
  ...(["PUT", "PATCH"] as const).map((method) =>
    onPath({
      cause: method === "PUT" ? "ETG-08.changes" : "ETG-11.changes",
      does: `keeps the tag on a quiet ${method}`,
      when: (turn) => quietWrite(turn, method) && turn.reply.status === 204,
      act: ({ request, reply, before, service }) => {
        const customer = customerOf(request, service);
        if (customer !== undefined && before !== undefined) {
          customer.tag = before.tag;
          customer.formerTags.pop();
        }
        return setHeader(reply, "ETag", before?.tag);
      },
    }),
  ),
  onPath({
    cause: "ETG-09.changes",
    does: "keeps the tag when a PUT writes what is stored",
    when: (turn) =>
      quietPut(turn) && turn.body[NAME] === turn.before?.name && turn.body[EMAIL] === turn.before?.email,
    act: ({ request, reply, before, service }) => {
      const customer = customerOf(request, service);
      if (customer !== undefined && before !== undefined) customer.tag = before.tag;
      return setHeader(reply, "ETag", before?.tag);
    },
  }),
  planted("ETG-10.new", "brings the tag back with the values of two writes ago", (ran) => (service) => {
    const tags = new Map<string, string>();
    return {
      mint(version, before, after) {
        const content = `${after.id} ${after.name} ${after.email} ${after.removed}`;
        const same = before?.name === after.name && before.email === after.email;
        const kept = same ? undefined : tags.get(content);
        const tag = kept ?? service.deployment.tag(version, after.id);
        if (kept !== undefined) ran();
        if (!same) tags.set(content, tag);
        return tag;
      },
    };
  }),
];
