/** Runs the rules against one deployment and makes the report. Library: no argv, no output, no exit. */

import { Deployment } from "../fixtures/deployment.ts";
import { Ground } from "../fixtures/ground.ts";
import {
  CouldNotRun,
  Disturbed,
  Inconclusive,
  Interrupted,
  NoReply,
  NotApplicable,
  type Pointer,
  Unreachable,
} from "../http/outcome-signal.ts";
import { checkTransport } from "../http/transport-check.ts";
import { ownAsk, Wire } from "../http/wire.ts";
import { Attempt } from "../probe/attempt.ts";
import { readEarly } from "../probe/callers/read-early.ts";
import type { Kit } from "../probe/kit.ts";
import { refuseEarly } from "../probe/refusals/refused-early.ts";
import type { Rule } from "../probe/rule.ts";
import { type Finding, makeReport, type RunFacts } from "../report/make.ts";
import type { Report } from "../report/schema.ts";
import { catalogue } from "../rules/catalogue.ts";
import { messageOf, stackOf } from "../target/message.ts";
import type { RunOptions } from "../target/options.ts";
import type { Profile } from "../target/profile.ts";
import { FreshValues } from "../target/values.ts";
import { confirmed } from "./confirmation.ts";
import { meetNeeds } from "./needs.ts";
import { inOrder, runAll } from "./schedule.ts";
import { prepare } from "./set-up.ts";

/**
 * @param progress is given each finding as soon as it is known
 * @returns the report, whatever the target does.
 */
export async function runKit(
  profile: Profile,
  options: RunOptions,
  progress?: (finding: Finding) => void,
): Promise<Report> {
  const startedAt = new Date();
  const selected = catalogue.filter((rule) => isSelected(rule, options));
  const wire = new Wire(profile, options);
  const values = new FreshValues();
  const ground = new Ground(wire, profile, values, options.journal);
  const deployment = new Deployment(wire, profile, values);
  const facts: RunFacts = {
    profile,
    options,
    wire,
    ground,
    deployment,
    startedAt,
    races: [],
    findings: [],
    notSelected: catalogue.filter((rule) => !selected.includes(rule)).map(({ id }) => id),
    unreachable: undefined,
    interrupted: false,
    kitFault: undefined,
  };
  const report = (finding: Finding) => {
    facts.findings.push(finding);
    progress?.(finding);
  };
  try {
    await checkTransport();
    const kit = await prepare({ profile, options, wire, ground, deployment, values, races: facts.races });
    const metrics = selected.find(({ needs }) => needs.includes("metrics"));
    if (metrics !== undefined && profile.metrics.urls.length > 0)
      await kit.counters.begin(new Attempt(kit, metrics));
    if (options.mode !== "read-only" && ground.cannotMake === undefined) {
      const late = selected.find(({ id }) => id === "ENV-08" || id === "ENV-09");
      if (late !== undefined) kit.refusedEarly.push(...(await refuseEarly(new Attempt(kit, late))));
      const last = selected.find(({ id }) => id === "ENV-09");
      if (last !== undefined) Object.assign(kit, await readEarly(new Attempt(kit, last)));
    }
    await runAll(kit, inOrder(selected), async (lane, rule) => {
      const finding = await confirmed(lane, () => attempt(lane, rule));
      if (finding.outcome === "violation") kit.violated.add(rule.id);
      if (rule.id === "ETG-04" && finding.outcome === "violation") kit.doubts.add("tag changes by itself");
      if (rule.id === "ETG-08" && finding.outcome === "violation") kit.doubts.add("tag stays");
      if (rule.id === "ETG-15" && finding.outcome === "violation") kit.doubts.add("tags repeat");
      report(finding);
    });
    const blamed = new Map<string, string>();
    for (const [index, finding] of facts.findings.entries())
      facts.findings[index] = await explained(kit, finding, facts.findings, blamed);
    await reportSlip(kit, facts.findings);
  } catch (error) {
    explain(error, facts);
    const done = new Set(facts.findings.map(({ rule }) => rule.id));
    const reason = messageOf(error);
    for (const rule of selected.filter(({ id }) => !done.has(id)))
      report(blank(rule, facts.kitFault === undefined ? "could-not-run" : "kit-error", wire.mask(reason)));
  } finally {
    wire.beginCleaning();
    if (options.keepFailing) await ground.keepOne(shownCustomers(facts.findings));
    await ground.cleanUp(deployment.deleteOffered, deployment.names, (values) => deployment.putBody(values));
    await wire.close();
  }
  // Lanes finish in any order; a report is read in one.
  facts.findings.sort((a, b) => catalogue.indexOf(a.rule) - catalogue.indexOf(b.rule));
  return makeReport(facts);
}

/** The addresses that the violations show, in the order of the catalogue. */
function shownCustomers(findings: readonly Finding[]): string[] {
  return [...findings]
    .sort((a, b) => catalogue.indexOf(a.rule) - catalogue.indexOf(b.rule))
    .flatMap(({ outcome, trial }) =>
      outcome === "violation"
        ? (trial?.evidence ?? [])
            .filter(({ fired }) => fired.length > 0)
            .flatMap(({ sent }) => trial?.exchanges.get(sent ?? 0)?.request.url ?? [])
        : [],
    );
}

function isSelected({ id }: Rule, { only, skip }: RunOptions): boolean {
  const named = (list: readonly string[]) => list.some((name) => id === name || id.startsWith(`${name}-`));
  return (only.length === 0 || named(only)) && !named(skip);
}

function explain(error: unknown, facts: RunFacts): void {
  if (error instanceof Interrupted) facts.interrupted = true;
  else if (error instanceof Unreachable || error instanceof NoReply) facts.unreachable = error.message;
  else if (!(error instanceof CouldNotRun)) facts.kitFault = stackOf(error);
}

function blank(rule: Rule, outcome: Finding["outcome"], reason: string): Finding {
  return { rule, outcome, reason, pointer: {}, trial: undefined, durationMs: 0, requests: 0 };
}

/**
 * A rule that could not run because another is broken, while that other one passed: what it met breaks the
 * specification all the same, only not always. Where it meets it again, it reports it itself; the others that met the
 * same then point to it.
 */
async function explained(
  kit: Kit,
  finding: Finding,
  all: readonly Finding[],
  /** The rule that has reported it, by the rules that should have. */
  blamed: Map<string, string>,
): Promise<Finding> {
  if (!isUnexplained(finding, all)) return finding;
  const guilty = finding.pointer.see?.join(" ") ?? "";
  const reporter = blamed.get(guilty);
  if (reporter !== undefined) return { ...finding, pointer: { see: [reporter] } };
  const again = finding.pointer.breach?.certain === true ? finding : await attempt(kit, finding.rule);
  const { breach } = again.pointer;
  if (!isUnexplained(again, all) || breach === undefined || again.trial === undefined) return again;
  blamed.set(guilty, finding.rule.id);
  const found = `${breach.found}, although ${again.pointer.see?.join(" and ")} passed: not always, then`;
  return broken(again, again.trial, { ...breach, found });
}

type Breach = Pick<NonNullable<Pointer["breach"]>, "exchange" | "allowed" | "found">;

function broken(finding: Finding, trial: Attempt, { exchange, allowed, found }: Breach): Finding {
  const proof = trial.proof(exchange.purpose, allowed);
  proof.evidence.sent = exchange.n;
  proof.evidence.came = String(exchange.reply?.status ?? exchange.failure);
  proof.must("unexplained", false, found);
  return judged(trial, (trial, outcome, reason) => ({ ...finding, trial, outcome, reason, pointer: {} }));
}

/** A run in which an accepted write had to be refused is not without a violation, whatever its rules look for. */
async function reportSlip({ wire }: Kit, findings: Finding[]): Promise<void> {
  if (findings.some(({ outcome }) => outcome === "violation")) return;
  for (const { url, reader } of wire.unguarded.notReadYet)
    await wire.send(ownAsk("was it applied", "GET", url, { caller: reader, reader }));
  const [slip] = wire.unguarded.slips;
  if (slip === undefined) return;
  const { kind, exchange } = slip;
  const { method } = exchange.request;
  const sender = wire.ledger[exchange.n - 1]?.rule;
  const fit = findings.filter(({ rule, trial }) => rule.level === "MUST" && trial !== undefined);
  const finding = fit.find(({ rule }) => rule.id === sender) ?? fit[0];
  if (finding?.trial === undefined) return;
  finding.trial.keep(exchange);
  const what = kind === "stale" ? "a tag that an earlier write had replaced" : "no If-Match";
  const found = `${method} with ${what} was answered ${exchange.reply?.status} and applied, in the middle of this rule`;
  const allowed = "refused, and nothing changed";
  findings[findings.indexOf(finding)] = broken(finding, finding.trial, { exchange, allowed, found });
}

function isUnexplained({ outcome, pointer }: Finding, all: readonly Finding[]): boolean {
  const passed = (id: string) => all.some(({ rule, outcome }) => rule.id === id && outcome === "pass");
  return outcome === "could-not-run" && pointer.breach !== undefined && (pointer.see ?? []).every(passed);
}

/** Attempts that may end early because the environment failed. Where each failed in one place, that is believed. */
const DISTURBED_MAX = 3;
/** A service that fails in more places than these has been found out, and each costs as many attempts. */
const PLACES_MAX = 3;
/** A request without a reply is sent so often, with plain reads in between, before the rule blames it. */
const SILENT_MAX = 3;

async function attempt(kit: Kit, rule: Rule): Promise<Finding> {
  const from = kit.wire.requests;
  const at = performance.now();
  const done = (
    trial: Attempt,
    outcome: Finding["outcome"],
    reason: string,
    pointer: Pointer = {},
  ): Finding => ({
    rule,
    outcome,
    reason: kit.wire.mask(reason),
    pointer,
    trial,
    durationMs: performance.now() - at,
    // Other lanes send meanwhile.
    requests: kit.wire.ledger.slice(from).filter((sent) => sent.rule === rule.id).length,
  });
  const disturbed: string[] = [];
  const believed = new Set<string>();
  const silent: string[] = [];
  for (;;) {
    const trial = new Attempt(kit, rule);
    trial.believed = believed;
    try {
      await meetNeeds(kit, rule);
      await rule.check(trial);
      return judged(trial, done);
    } catch (error) {
      if (error instanceof Interrupted || error instanceof Unreachable) throw error;
      if (error instanceof Disturbed) {
        disturbed.push(error.asked);
        const isOnePlace = disturbed.length === DISTURBED_MAX && new Set(disturbed).size === 1;
        if (isOnePlace && believed.size < PLACES_MAX) {
          believed.add(error.asked);
          disturbed.length = 0;
        }
        if (disturbed.length <= DISTURBED_MAX) continue;
      }
      if (error instanceof NoReply) {
        trial.keep(error.exchange);
        // A server may close an idle connection whenever it likes (RFC 9112 9.3.1): the next try gets fresh ones.
        await kit.wire.transport.withoutKeepAlive();
        await kit.weather.settle();
        const { request, purpose } = error.exchange;
        // The place in the rule counts as well: a network loses now this request, now that one.
        const alike = [...trial.exchanges.values()].filter(
          (each) => each.purpose === purpose && each.request.method === request.method,
        );
        // Of equal requests, in a burst say, one that is lost while another is answered is the network's.
        const equal = alike.some(
          ({ reply, request: { url, headers } }) =>
            reply !== null && url === request.url && Bun.deepEquals(headers, request.headers),
        );
        silent.push(`${request.method} ${purpose} ${equal ? `lost ${error.exchange.n}` : alike.length}`);
        // A few may be the network; the same again and again, while others are answered, is the service.
        if (silent.length < SILENT_MAX) continue;
        if (new Set(silent).size > 1)
          return done(trial, "could-not-run", `requests of this rule got no reply: ${error.message}`);
        const proof = trial.proof(purpose, "a complete reply");
        proof.evidence.sent = error.exchange.n;
        proof.evidence.came = error.exchange.failure ?? "no reply";
        const found = `no complete reply, ${SILENT_MAX} times, while others are answered: ${error.message}`;
        proof.must("answered", false, found);
        return judged(trial, done);
      }
      if ([...trial.assertions.values()].some(({ fired }) => fired > 0)) return judged(trial, done);
      if (error instanceof Disturbed)
        return done(
          trial,
          "could-not-run",
          `the deployment failed in the middle of the rule, several times: ${error.message}`,
        );
      if (error instanceof NotApplicable) return done(trial, "not-applicable", error.message);
      if (error instanceof CouldNotRun) return done(trial, "could-not-run", error.message, error.pointer);
      if (error instanceof Inconclusive) return done(trial, "inconclusive", error.message);
      return done(trial, "kit-error", stackOf(error));
    }
  }
}

function judged(
  trial: Attempt,
  done: (trial: Attempt, outcome: Finding["outcome"], reason: string, pointer?: Pointer) => Finding,
): Finding {
  const fired = [...trial.assertions.values()].filter((assertion) => assertion.fired > 0);
  const worst = fired.find(({ level }) => level === "MUST") ?? fired[0];
  if (worst !== undefined) {
    const others = fired.filter((each) => each !== worst).map(({ id }) => id);
    const more = others.length > 0 ? `; also failed: ${others.join(", ")}` : "";
    return done(
      trial,
      worst.level === "MUST" ? "violation" : "warning",
      `${worst.detail ?? worst.id}${more}`,
    );
  }
  if (trial.maskedBy.size > 0)
    return done(trial, "could-not-run", "its refusals came with a wrong status that is blamed once for all", {
      see: [...trial.maskedBy],
    });
  const looked = [...trial.assertions.values()].reduce((sum, assertion) => sum + assertion.looked, 0);
  // A rule that asserted nothing has tested nothing.
  if (looked === 0) return done(trial, "could-not-run", "nothing could be asserted");
  const short = trial.leftOut.map((what) => `; left out by ${what}`).join("");
  return done(
    trial,
    "pass",
    `${looked} ${looked === 1 ? "assertion" : "assertions"} held${trial.note}${short}`,
  );
}
