/** Headers that stand in most requests, and that a service may take for a reason to go another way. */

import type { Lines, Trial } from "../trial.ts";

/** What pages send, and what clients add for debugging. */
export const FROM_BROWSERS: Lines = [
  [
    "User-Agent",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36",
  ],
  ["Accept-Language", "en-US,en;q=0.9,de;q=0.8"],
  ["Sec-Fetch-Mode", "cors"],
  ["Sec-Fetch-Dest", "empty"],
  ["Pragma", "no-cache"],
  ["Priority", "u=1, i"],
  ["Save-Data", "on"],
  ["TE", "trailers"],
];

/** What gateways, meshes and tracing add to each request, on the way to a service that they take for trusted. */
export function fromProxies({ host, protocol }: URL): Lines {
  const scheme = protocol.slice(0, -1);
  return [
    ["traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
    ["tracestate", "kit=00f067aa0ba902b7"],
    ["baggage", "kit=1"],
    ["X-Request-Id", crypto.randomUUID()],
    ["X-Correlation-Id", crypto.randomUUID()],
    ["X-B3-TraceId", "4bf92f3577b34da6a3ce929d0e0e4736"],
    ["X-Amzn-Trace-Id", "Root=1-67891233-abcdef012345678912345678"],
    ["Via", "1.1 kit-proxy"],
    ["Forwarded", `for=127.0.0.1;host="${host}";proto=${scheme}`],
    ["X-Forwarded-For", "127.0.0.1"],
    ["X-Real-IP", "127.0.0.1"],
    ["X-Forwarded-Host", host],
    ["X-Forwarded-Proto", scheme],
    ["CF-Connecting-IP", "127.0.0.1"],
    ["True-Client-IP", "127.0.0.1"],
    ["X-Envoy-Internal", "true"],
    ["X-Internal", "true"],
  ];
}

/** Who the sender says to be. A gateway that has looked at the credentials says so; anybody else can say it too. */
export const CLAIMS: Lines = [
  ["X-Role", "admin"],
  ["X-Roles", "admin"],
  ["X-User-Role", "admin"],
  ["X-User-Roles", "admin"],
  ["X-Admin", "true"],
  ["X-Debug", "true"],
];

const NAMES_CLIENT = /^X-(?:Forwarded|Real)/;

/** Whether the kit says to be another than it is; a gentle run does not, since a firewall may take it for an attack. */
export const poses = (t: Trial): boolean =>
  !t.gentlyLeavesOut("headers and parameters that name another client, role or address");

export function gentleLines(t: Trial, lines: Lines): Lines {
  if (poses(t)) return lines;
  return lines.filter(
    (line) => !(CLAIMS.includes(line) || NAMES_CLIENT.test(line[0]) || /127/.test(line[1])),
  );
}
