/** ATM and AUT: requests under way at once that are taken for one another (4.2, 5.2). */

import { type Fault, isRead, type Plant } from "../../fault.ts";
import { headerLines, type Reply, type Request } from "../../service/http-socket.ts";
import { gap } from "../../two-steps.ts";

/** Gives the answer to a request to all that are like it and come while it is under way. */
const joined =
  (like: (request: Request) => Promise<string | undefined> | string | undefined): Plant =>
  (ran) =>
  () => {
    const under = new Map<string, Promise<Reply>>();
    return {
      async around(request, next) {
        const key = await like(request);
        if (key === undefined) return await next(request);
        const other = under.get(key);
        if (other !== undefined) {
          ran();
          return await other;
        }
        const mine = gap(2).then(() => next(request));
        under.set(key, mine);
        try {
          return await mine;
        } finally {
          under.delete(key);
        }
      },
    };
  };

/** Reads the customers of a moment in one statement, and hands its rows out in the order in which they came. */
const batchedInAnyOrder: Plant = (ran) => () => {
  let batch: string[] = [];
  return {
    async around(request, next) {
      if (!isRead(request)) return await next(request);
      const mine = batch;
      const at = mine.push(request.path) - 1;
      await gap(1);
      if (batch === mine) batch = [];
      const path = mine.toSorted()[at] ?? request.path;
      if (path !== request.path) ran();
      return await next({ ...request, path });
    },
  };
};

export const JOINED_REQUEST_FAULTS: Fault[] = [
  {
    id: "equal-writes-joined",
    mode: "full",
    rule: "ATM-01",
    does: "takes a PUT that comes while its like is under way for the same one sent again, and gives both its answer",
    plant: joined(async (request) =>
      request.method === "PUT"
        ? `${request.path} ${await request.body()} ${headerLines(request, "if-match")}`
        : undefined,
    ),
  },
  {
    id: "reads-joined-by-customer",
    rule: "AUT-18",
    does: "reads a customer once for all who ask for it meanwhile, whatever fields they asked for",
    plant: joined((request) =>
      isRead(request) ? `${request.path} ${headerLines(request, "authorization")}` : undefined,
    ),
  },
  {
    id: "reads-joined-by-address",
    rule: "AUT-18",
    does: "asks once for all who read one address meanwhile, without regard to who they are",
    plant: joined((request) => (isRead(request) ? request.target : undefined)),
  },
  {
    id: "batch-in-any-order",
    rule: "AUT-18",
    does: "reads the customers of a moment in one statement, and takes the order of its rows for that of the requests",
    plant: batchedInAnyOrder,
  },
  {
    id: "request-kept-in-a-variable",
    rule: "AUT-18",
    does: "keeps the read that it answers in a variable of the module while it waits for the database",
    plant: (ran) => () => {
      let current: Request | undefined;
      return {
        async around(request, next) {
          if (!isRead(request)) return await next(request);
          current = request;
          await gap(1);
          if (current !== request) ran();
          return await next(current);
        },
      };
    },
  },
];
