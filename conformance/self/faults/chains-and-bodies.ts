/** What ORMs, hand-written SQL and counters get wrong beyond a single write: chains of versions, bodies, branches that are not counted. */
import { customerOf, deciding, type Fault, isCustomer, isRead, replying, withBody } from "../fault.ts";
import { getHeader, headerLines, setHeader } from "../service/http-socket.ts";

const accepted = (status: number) => status >= 200 && status < 300;

export const CHAIN_AND_BODY_FAULTS: Fault[] = [
  {
    id: "answers-later-tag",
    rule: "ATM-08",
    cause: /both told the new tag/,
    does: "reads the row again after the update to answer its tag, which by then may be another writer's",
    plant: replying(
      (reply, request) => request.method === "PUT" && accepted(reply.status),
      async (reply, request, service) => {
        await Bun.sleep(5);
        return setHeader(reply, "ETag", customerOf(request, service)?.tag);
      },
    ),
  },
  {
    id: "email-alone-keeps-tag",
    rule: "ETG-08",
    cause: /email alone/,
    does: "bumps the version in a trigger that watches the name column only",
    plant: deciding("mint", (sound, ran) => (version, before, after) => {
      if (before === undefined || before.name !== after.name || before.email === after.email)
        return sound(version, before, after);
      ran();
      return before.tag;
    }),
  },
  {
    id: "limited-read-moves-tag",
    rule: "ETG-04",
    cause: /by reading alone/,
    does: "stores when a support agent last looked at the customer, in the versioned row",
    plant: replying(
      (reply, request, service) =>
        isRead(request) && reply.status === 200 && service.caller(request) === "limited",
      (reply, request, service) => {
        const customer = customerOf(request, service);
        if (customer !== undefined)
          Object.assign(customer, { tag: service.deployment.tag(service.nextVersion(), customer.id) });
        return reply;
      },
    ),
  },
  {
    id: "weak-412-not-counted",
    rule: "MET-09",
    cause: /weakened/,
    does: "refuses weak tags in a parser that knows no counter",
    plant: deciding("counted", (sound, ran) => (reply, request) => {
      const weak = /^\s*W\//.test(headerLines(request, "if-match").join());
      if (reply.status !== 412 || !weak) return sound(reply, request);
      ran();
      return [];
    }),
  },
  {
    id: "stores-latin-1",
    rule: "FLD-20",
    cause: /read back as/,
    does: "keeps names in a column that knows Latin-1 alone",
    plant: deciding("store", (sound, ran) => (customer, change, request) => {
      const { name } = change;
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the range is what the column holds
      const held = typeof name === "string" ? name.replace(/[^\x00-\xff]/g, "?") : name;
      if (held !== name) ran();
      sound(customer, held === undefined ? change : { ...change, name: held }, request);
    }),
  },
  {
    id: "status-of-one-projection",
    rule: "FLD-10",
    cause: /status/,
    does: "shows a constant in place of the status where it is asked for beside other fields",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 200 && /fields=.*,/.test(request.query),
      (reply, _request, { deployment }) =>
        withBody(reply, (body) =>
          deployment.members.status in body ? { ...body, [deployment.members.status]: "Unknown" } : body,
        ),
    ),
  },
  {
    id: "projection-outlives-delete",
    rule: "ORD-05",
    cause: /deleted customer was answered 200/,
    does: "serves projections from a view that keeps deleted rows",
    plant: replying(
      (reply, request, service) =>
        isRead(request) &&
        reply.status === 404 &&
        /fields=/.test(request.query) &&
        customerOf(request, service)?.removed === true,
      (_reply, request, service) => {
        const customer = customerOf(request, service);
        const body = JSON.stringify({ [service.deployment.members.name]: customer?.name });
        return {
          status: 200,
          headers: [
            ["ETag", customer?.tag ?? ""],
            ["Content-Type", "application/json"],
          ],
          body,
        };
      },
    ),
  },
  {
    id: "losers-412-without-etag",
    rule: "ATM-02",
    cause: /carries no ETag/,
    does: "answers the loser of a row lock from a handler that has no row at hand",
    plant: (ran) => (service) => {
      const under = new Map<string, number>();
      return {
        async around(request, next) {
          const { path } = request;
          under.set(path, (under.get(path) ?? 0) + 1);
          const crowded = () => (under.get(path) ?? 0) > 1;
          const early = crowded();
          const reply = await next(request);
          const met = early || crowded();
          under.set(path, (under.get(path) ?? 1) - 1);
          if (!met || reply.status !== 412 || !isCustomer(request) || getHeader(reply, "etag") === undefined)
            return reply;
          if (customerOf(request, service)?.removed !== false) return reply;
          ran();
          return setHeader(reply, "ETag", undefined);
        },
      };
    },
  },
  {
    id: "tombstone-before-428",
    rule: "ORD-14",
    cause: /404/,
    does: "looks up tombstones in a filter that stands before the check of If-Match",
    plant: replying(
      (reply, request, service) => reply.status === 428 && customerOf(request, service)?.removed === true,
      (_reply, _request, service) => service.refuse(404, "removed"),
    ),
  },
];
