import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { memberNamed, parseJsonOrUndefined, plainText } from "../client/customer.ts";
import { formatJson, type Json } from "../client/json.ts";
import { customersOf } from "../client/pages.ts";
import type { CompleteReply, Reply } from "../client/reply.ts";
import { type ApiRequest, listCustomers, readCustomer } from "../client/request.ts";
import { proxyInWords } from "../config/proxy.ts";
import {
  type Finding,
  judgeClock,
  judgeConnection,
  judgeCredentials,
  judgeFreshness,
  judgeTags,
} from "../doctor/diagnosis.ts";
import { failure } from "../outcome/failure.ts";
import { visibleControls } from "../output/visible-controls.ts";
import type { RegisterCommand } from "../program.ts";
import type { Ending, Invocation } from "./invocation.ts";

export const registerDoctor: RegisterCommand = (program, run) => {
  program
    .command("doctor [id]")
    .description(
      "check the way to the deployment, with these settings: name, TLS, credentials, clock, entity-tags",
    )
    .action(
      run(async (invocation, [id]) => {
        const findings = await examine(invocation, id);
        await report(invocation, findings);
        return verdict(findings);
      }),
    );
};

/** Reads alone, in the order in which one trouble hides the next. */
async function examine(invocation: Invocation, id: string | undefined): Promise<Finding[]> {
  const { api, settings } = invocation;
  const findings: Finding[] = [{ check: "settings", verdict: "ok", found: settingsLine(invocation) }];
  const name = await judgeName(invocation);
  if (name !== undefined) findings.push(name);
  if (name?.verdict === "bad") return findings;

  const before = Date.now();
  const first = await send(
    invocation,
    id === undefined ? listCustomers({ limit: 1 }) : readCustomer(id, undefined),
  );
  findings.push(judgeConnection(first, api.url));
  if (first.kind !== "complete") return findings;
  findings.push(judgeClock(first.fields.get("date"), (before + Date.now()) / 2));
  const credentials = judgeCredentials(first, settings.headers.length > 0);
  findings.push(credentials);
  if (credentials.verdict === "bad") return findings;

  const known = id ?? firstId(first);
  if (known === undefined) {
    findings.push({
      check: "entity-tag",
      verdict: "warning",
      found: `not checked: the list (${first.status}) names no customer`,
      mend: "customers doctor ID",
    });
    return findings;
  }
  return [...findings, ...(await examineTags(invocation, known))];
}

async function examineTags(invocation: Invocation, id: string): Promise<Finding[]> {
  const request = readCustomer(id, undefined);
  const plain = await send(invocation, request);
  if (plain.kind !== "complete") return [judgeConnection(plain, invocation.api.url)];
  if (plain.status !== 200) {
    return [
      {
        check: "customer",
        verdict: "bad",
        found: `customer ${id} could not be read (${plain.status})`,
        mend: "customers doctor with the id of a customer that exists",
      },
    ];
  }
  const compressed = await send(invocation, {
    ...request,
    headers: { ...request.headers, "accept-encoding": "gzip, br" },
  });
  return [
    ...judgeTags(plain, compressed.kind === "complete" && compressed.status === 200 ? compressed : undefined),
    judgeFreshness(plain),
  ];
}

function send({ api, deadline }: Invocation, request: ApiRequest): Promise<Reply> {
  return api.send(request, deadline());
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
  if (isIP(host) !== 0 || settings.proxy.kind === "proxy") return undefined;
  try {
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
      found: `${host} is not known (${code})`,
      mend: "--url, or the resolver of this machine (/etc/resolv.conf)",
    };
  }
}

function firstId(reply: CompleteReply): string | undefined {
  const [customer] = customersOf(parseJsonOrUndefined(reply.text)) ?? [];
  const id = customer === undefined ? undefined : memberNamed(customer.value, "id")?.value;
  return id === undefined ? undefined : plainText(id);
}

async function report({ out, settings }: Invocation, findings: readonly Finding[]): Promise<void> {
  if (settings.output === "json" || settings.output === "ndjson") {
    const items = findings.map((finding) => new Map<string, Json>(Object.entries(finding)));
    await out.write(
      settings.output === "json"
        ? `${formatJson(items)}\n`
        : items.map((item) => `${formatJson(item)}\n`).join(""),
    );
    return;
  }
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, verdict, found, mend }) => [
    `${verdict.padEnd(7)}  ${check.padEnd(width)}  ${found}`,
    ...(mend === undefined ? [] : [`${" ".repeat(width + 11)}mend: ${mend}`]),
  ]);
  await out.write(visibleControls(`${lines.join("\n")}\n`));
}

function verdict(findings: readonly Finding[]): Ending {
  const bad = findings.filter((finding) => finding.verdict === "bad");
  const [first] = bad;
  if (first === undefined) return undefined;
  const exits: Record<string, "not-allowed" | "not-found"> = {
    credentials: "not-allowed",
    customer: "not-found",
  };
  const unreachable = first.check === "name" || first.check.startsWith("connection");
  const exit = exits[first.check] ?? (unreachable ? "unreachable" : "failure");
  return failure(
    exit,
    `${first.check}: ${first.found}`,
    first.mend === undefined ? undefined : `To mend it: ${first.mend}`,
  );
}
