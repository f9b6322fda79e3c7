import { type Customer, memberNamed, plainText } from "../client/customer.ts";
import type { Json } from "../client/json.ts";
import { eachPage } from "../client/pages.ts";
import { type Ports, readCurrent } from "../client/read-customer.ts";
import { failedBy, type Reply, type Transport } from "../client/wire/reply.ts";
import { readCustomer } from "../client/wire/request.ts";
import { proxyInWords } from "../config/values/proxy.ts";
import {
  type Finding,
  judgeClock,
  judgeConnection,
  judgeFreshness,
  judgeService,
  judgeTags,
  judgeTokenEnd,
} from "../doctor/diagnosis.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { type Failure, failure, isFailure } from "../outcome/failure.ts";
import { listFailure, readFailure } from "../outcome/reply-failure.ts";
import { tokenRenewal } from "../outcome/token-end.ts";
import { outputFormat } from "../output/print-customers.ts";
import { printRows } from "../output/print-facts.ts";
import { visibleControls } from "../output/visible-controls.ts";
import type { RegisterCommand } from "./common/command.ts";
import { customerId } from "./common/options.ts";
import { refusedByService } from "./common/service-check.ts";

export const registerDoctor: RegisterCommand = (program, run) => {
  program
    .command("doctor")
    .description(
      "check the way to the deployment, with these settings: name, TLS, credentials, clock, entity-tags",
    )
    .argument("[id]", "a customer to look at (default: the first of the list)", customerId)
    .action(
      run(async (invocation, id) => {
        const findings = await examine(invocation, id);
        const tokenEnd = invocation.api.takeTokenEnd();
        if (tokenEnd !== undefined) findings.push(judgeTokenEnd(tokenEnd, tokenRenewal(invocation.settings)));
        await report(invocation, findings);
        return verdict(findings);
      }),
    );
};

/**
 * Reads alone, in the order in which one trouble hides the next. Each reading goes through the functions of `get` and
 * `list`, so doctor accepts no service that those would refuse.
 */
async function examine(invocation: Invocation, id: string | undefined): Promise<Finding[]> {
  const { api, settings } = invocation;
  const findings: Finding[] = [{ check: "settings", verdict: "ok", found: settingsLine(invocation) }];
  const name = await judgeName(invocation);
  if (name !== undefined) findings.push(name);
  if (name?.verdict === "bad") return findings;

  const watched = watch(api);
  const ports = { transport: watched, deadline: invocation.deadline() };
  const service = id === undefined ? await firstCustomer(ports) : await customerOf(ports, id);
  const last = watched.last();
  if (last === undefined) return findings;
  findings.push(judgeConnection(last.reply, api.url));
  if (last.reply.kind !== "complete") return findings;
  findings.push(judgeClock(last.reply.fields.get("date"), last.atMs));
  const known = id ?? (isFailure(service) ? undefined : idOf(service));
  // An empty list does not show that it is a customer service which answers.
  const judged = service ?? (await refusedByService(ports));
  findings.push(judgeService(judged, settings.headers.length > 0));
  if (isFailure(judged)) return findings;

  if (known === undefined) {
    findings.push({
      check: "entity-tag",
      verdict: "warning",
      found: `not checked: the list (${last.reply.status}) names no customer`,
      fix: "customers doctor ID",
    });
    return findings;
  }
  return [...findings, ...(await examineTags(invocation, known))];
}

/** Of the list; undefined where it is empty. */
async function firstCustomer(ports: Ports): Promise<Customer | Failure | undefined> {
  for await (const page of eachPage(() => ports, { limit: 1 })) {
    return page.kind === "page" ? page.items[0] : listFailure(page, { url: ports.transport.url });
  }
  return undefined;
}

async function customerOf(ports: Ports, id: string): Promise<Customer | Failure> {
  const reading = await readCurrent(ports, id);
  return reading.kind === "read"
    ? reading.customer
    : readFailure(reading, { what: `customer ${id}`, url: ports.transport.url });
}

/**
 * Remembers the last reply and when it came: the verdict is about a customer, the findings about the way. A request that
 * the deadline cut off says less of it than the reply before.
 */
function watch(transport: Transport): Transport & { last(): { reply: Reply; atMs: number } | undefined } {
  let last: { reply: Reply; atMs: number } | undefined;
  return {
    get url() {
      return transport.url;
    },
    async send(...parameters) {
      const before = Date.now();
      const reply = await transport.send(...parameters);
      if (!failedBy(reply, "timeout") || last === undefined)
        last = { reply, atMs: (before + Date.now()) / 2 };
      return reply;
    },
    last: () => last,
  };
}

async function examineTags(invocation: Invocation, id: string): Promise<Finding[]> {
  const watched = watch(invocation.api);
  const read = await customerOf({ transport: watched, deadline: invocation.deadline() }, id);
  const plain = watched.last()?.reply;
  if (plain?.kind !== "complete")
    return plain === undefined ? [] : [judgeConnection(plain, invocation.api.url)];
  if (isFailure(read)) return [judgeService(read, true)];
  const request = readCustomer(id, undefined);
  const headers = { ...request.headers, "accept-encoding": "gzip, br" };
  const { api, settings, interrupted } = invocation;
  const compressed = await api.send({ ...request, headers }, settings.timeoutMs, interrupted);
  return [
    ...judgeTags(plain, compressed.kind === "complete" && compressed.status === 200 ? compressed : undefined),
    judgeFreshness(plain),
  ];
}

function settingsLine({ api, settings }: Invocation): string {
  const profile = settings.profile === undefined ? "no profile" : `profile "${settings.profile}"`;
  const proxy = settings.proxy.kind === "proxy" ? `, ${proxyInWords(settings.proxy)}` : "";
  const names = settings.headers.map(({ name }) => name).join(", ") || "none";
  return `${api.url}, ${profile}${proxy}; headers: ${names}`;
}

/** Behind a proxy the name is looked up there, not here. */
async function judgeName({ api, settings }: Invocation): Promise<Finding | undefined> {
  const host = new URL(api.url).hostname.replace(/^\[|\]$/g, "");
  const { isIP } = await import("node:net");
  if (isIP(host) !== 0 || settings.proxy.kind === "proxy") return undefined;
  try {
    const { lookup } = await import("node:dns/promises");
    const addresses = await lookup(host, { all: true });
    return {
      check: "name",
      verdict: "ok",
      found: `${host} is ${addresses.map(({ address }) => address).join(", ")}`,
    };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown";
    return {
      check: "name",
      verdict: "bad",
      exit: "unreachable",
      found: `${host} is not known (${code})`,
      fix: "--url, or the resolver of this machine (/etc/resolv.conf)",
    };
  }
}

function idOf(customer: Customer | undefined): string | undefined {
  const id = customer === undefined ? undefined : memberNamed(customer.value, "id")?.value;
  return id === undefined ? undefined : plainText(id);
}

async function report(invocation: Invocation, findings: readonly Finding[]): Promise<void> {
  if (outputFormat(invocation) !== "table") {
    const columns = ["check", "verdict", "found", "fix"] as const;
    const rowOf = (finding: Finding) =>
      new Map<string, Json>(columns.map((column) => [column, finding[column] ?? null]));
    return await printRows(invocation, columns, findings.map(rowOf));
  }
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, verdict, found, fix }) => [
    `${verdict.padEnd(7)}  ${check.padEnd(width)}  ${found}`,
    ...(fix === undefined ? [] : [`${" ".repeat(width + 11)}to correct it: ${fix}`]),
  ]);
  await invocation.out.write(visibleControls(`${lines.join("\n")}\n`));
}

function verdict(findings: readonly Finding[]): Ending {
  const bad = findings.filter((finding) => finding.verdict === "bad");
  const [first] = bad;
  if (first === undefined) return undefined;
  return failure(
    first.exit ?? "failure",
    `${first.check}: ${first.found}`,
    first.fix === undefined ? undefined : `To correct it: ${first.fix}`,
  );
}
