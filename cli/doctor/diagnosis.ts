/** What the replies of a deployment say about the way to it: pure, one function a question. */

import type { Customer } from "../client/customer.ts";
import { parseEntityTag } from "../client/wire/entity-tag.ts";
import { httpDateMs } from "../client/wire/http-date.ts";
import type { CompleteReply, Reply } from "../client/wire/reply.ts";
import { type Failure, isFailure } from "../outcome/failure.ts";
import { type TokenEnd, tokenEndInWords } from "../outcome/token-end.ts";

export type Finding = {
  check: string;
  /** `bad` is in the way of this client; `warning` is in the way of others, or soon will be. */
  verdict: "ok" | "warning" | "bad";
  found: string;
  /** The line that corrects it. */
  fix?: string;
  /** Of a bad one: how the command ends. */
  exit?: Failure["exit"];
};

const CLOCK_SKEW_MAX_MS = 60_000;

/** @param nowMs the local clock, half-way between the request and its reply. */
export function judgeClock(date: string | undefined, nowMs: number): Finding {
  const check = "clock";
  const serverMs = httpDateMs(date);
  if (serverMs === undefined)
    return { check, verdict: "ok", found: "the server sends no Date to compare with" };
  const skewS = Math.round((nowMs - serverMs) / 1000);
  if (Math.abs(skewS) * 1000 <= CLOCK_SKEW_MAX_MS)
    return { check, verdict: "ok", found: `within ${Math.abs(skewS)} s of the server's` };
  return {
    check,
    verdict: "warning",
    found: `this machine is ${Math.abs(skewS)} s ${skewS > 0 ? "ahead of" : "behind"} the server: certificates and expiry times are misjudged`,
    fix: "timedatectl set-ntp true",
  };
}

export function judgeConnection(reply: Reply, url: string): Finding {
  const check = url.startsWith("https:") ? "connection and TLS" : "connection";
  if (reply.kind === "complete") {
    const cleartext = url.startsWith("http:") && !/^http:\/\/(?:localhost|127\.|\[::1\])/.test(url);
    return cleartext
      ? {
          check,
          verdict: "warning",
          found: "plain HTTP: everyone on the way can read the credentials",
          fix: `--url ${url.replace("http:", "https:")}`,
        }
      : { check, verdict: "ok", found: `${url} answers` };
  }
  const fixes: Partial<Record<typeof reply.cause, string>> = {
    tls: "--cacert PATH of the authority's certificate (PEM)",
    unreachable: "--url, and --proxy where this network has one",
    timeout: "--timeout, or a way without the firewall that swallows packets",
  };
  const fix = reply.hint ?? fixes[reply.cause];
  return {
    check,
    verdict: "bad",
    exit: "unreachable",
    found: reply.detail,
    ...(fix === undefined ? {} : { fix }),
  };
}

/**
 * @param outcome of reading, as `get` or `list` sees it; undefined: an empty list. @param sent credentials
 * were sent.
 */
export function judgeService(outcome: Customer | Failure | undefined, sent: boolean): Finding {
  if (outcome === undefined || !isFailure(outcome)) {
    return { check: "credentials", verdict: "ok", found: sent ? "accepted" : "none needed" };
  }
  const { exit, status } = outcome;
  if (status === 401) {
    return {
      check: "credentials",
      verdict: "bad",
      exit,
      found: sent ? "the server does not know them (401)" : "none are set, and the server wants some (401)",
      fix: "customers login, or for another scheme: --header-env 'X-Api-Key: $VARIABLE'",
    };
  }
  if (status === 403) {
    return {
      check: "credentials",
      verdict: "bad",
      exit,
      found: "they do not allow reading (403)",
      fix: "credentials of a role that may read customers",
    };
  }
  const bad = { check: exit === "not-found" ? "customer" : "service", verdict: "bad", exit } as const;
  const { message: found, hint: fix } = outcome;
  return { ...bad, found, ...(fix === undefined ? {} : { fix }) };
}

/** @param renewal what to do before then. */
export function judgeTokenEnd(end: TokenEnd, renewal: string): Finding {
  return { check: "token", verdict: "warning", found: `it ${tokenEndInWords(end)}`, fix: renewal };
}

/** Something between here and the service that answers from memory makes every write meet a 412. */
export function judgeFreshness(reply: CompleteReply): Finding {
  const check = "freshness";
  const age = reply.fields.get("age");
  const hit = /\bhit\b/i.test(reply.fields.get("x-cache") ?? "");
  if (age === undefined && !hit) return { check, verdict: "ok", found: "no cache on the way answered" };
  return {
    check,
    verdict: "bad",
    found: `a cache answered${age === undefined ? "" : ` with a copy ${age} s old`} although the request forbids that: its tags are stale`,
    fix: "switch caching off for /customers at the proxy or CDN",
  };
}

/**
 * @param plain the reply to `Accept-Encoding: identity`, as this client reads; @param compressed to gzip.
 */
export function judgeTags(plain: CompleteReply, compressed: CompleteReply | undefined): Finding[] {
  const check = "entity-tag";
  const tag = parseEntityTag(plain.fields.get("etag"));
  const through = plain.fields.get("via") ?? plain.fields.get("server");
  const by = through === undefined ? "" : ` (passed through: ${through})`;
  const off =
    "nginx: gzip off; Apache: SetEnv no-gzip 1; a CDN: compression off, or Cache-Control: no-transform at the service";
  if (tag.kind !== "strong") {
    const found = {
      weak: `it arrives weak (${tag.kind === "missing" ? "" : tag.tag}), so no write can be conditional${by}`,
      malformed: `it is no entity-tag (${tag.kind === "missing" ? "" : tag.tag})${by}`,
      missing: `none arrives, so no write can be conditional${by}`,
    }[tag.kind];
    return [
      { check, verdict: "bad", found, fix: tag.kind === "missing" ? "let ETag through at the proxy" : off },
    ];
  }
  const findings: Finding[] = [{ check, verdict: "ok", found: `strong: ${tag.tag}` }];
  if (compressed === undefined) return findings;
  const other = compressed.fields.get("etag");
  findings.push(
    other === tag.tag
      ? { check: "entity-tag with gzip", verdict: "ok", found: "the same" }
      : {
          check: "entity-tag with gzip",
          verdict: "warning",
          found: `a proxy makes it ${other ?? "vanish"} when it compresses${by}; this client asks for plain replies, others will meet 412`,
          fix: off,
        },
  );
  return findings;
}
