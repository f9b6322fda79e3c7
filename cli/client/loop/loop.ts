/** Does what step.ts decides. */

import type { Customer } from "../customer.ts";
import { type Ports, type Reading, readCurrent } from "../read-customer.ts";
import { readWhole } from "../whole-customer.ts";
import { type ApiRequest, askingForChanges } from "../wire/request.ts";
import type { WriteIntent } from "./intent.ts";
import type { Action, Event } from "./loop-state.ts";
import { begin, step } from "./step.ts";
import type { WriteJob } from "./write-job.ts";
import type { WriteOutcome } from "./write-outcome.ts";

export async function writeUntilDecided(ports: Ports, job: WriteJob): Promise<WriteOutcome> {
  let [state, action] = begin(job, ports.deadline.remainingMs());
  while (action.kind !== "end") [state, action] = step(state, await act(ports, job, action));
  return action.outcome;
}

async function act(ports: Ports, job: WriteJob, action: Exclude<Action, { kind: "end" }>): Promise<Event> {
  const { transport, deadline } = ports;
  const now = () => ({ remainingMs: deadline.remainingMs(), chance: Math.random() });
  switch (action.kind) {
    case "read": {
      const reading = await readForWrite(ports, job.id, job.intent, action.persistent);
      return { kind: "read", reading, ...now() };
    }
    case "write": {
      const startMs = performance.now();
      const request = job.asksForChanges ? askingForChanges(action.request, job.requestId) : action.request;
      const reply = await transport.send(request, action.limitMs, deadline.interrupted);
      return { kind: "replied", reply, tookMs: performance.now() - startMs, ...now() };
    }
    case "wait":
      await deadline.wait(action.ms);
      return { kind: deadline.interrupted.aborted ? "interrupted" : "timeUp", ...now() };
  }
}

type Preview = { kind: "would-write"; request: ApiRequest; current: Customer } | WriteOutcome;

/** Reads and decides as the write itself would, up to the first request. */
export async function previewWrite(ports: Ports, job: WriteJob): Promise<Preview> {
  const [state, action] = begin(job, ports.deadline.remainingMs());
  const [{ current }, next] =
    action.kind === "read" ? step(state, await act(ports, job, action)) : [state, action];
  if (next.kind === "end") return next.outcome;
  if (next.kind !== "write" || current === undefined || current === "gone")
    throw new Error(`a write can't begin with ${next.kind}`);
  return { kind: "would-write", request: next.request, current };
}

/** What the write needs to be read; where not all of it may be, what will do. */
async function readForWrite(
  ports: Ports,
  id: string,
  { fields, fieldsAtLeast }: WriteIntent,
  persistent: boolean,
): Promise<Reading> {
  if (fields === "whole") return readWhole(ports, id, persistent);
  const reading = await readCurrent(ports, id, { fields, persistent });
  const atLeast = reading.kind === "forbidden" ? fieldsAtLeast : undefined;
  // A deployment may know other names than the registry's: its default set then shows what there is.
  const otherNames = fields !== undefined && reading.kind === "invalid";
  if (atLeast === undefined && !otherNames) return reading;
  const least = await readCurrent(ports, id, { fields: atLeast, persistent });
  return least.kind === "read" ? least : reading;
}
