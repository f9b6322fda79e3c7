/** What `no_proxy` exempts. Loaded where it is set, since node:net is slow to load. */
import { BlockList, isIP } from "node:net";

/**
 * The forms that curl and Go know: `*`, host names (`example.com` and `.example.com` stand for the name and all below
 * it), addresses, address ranges (10.0.0.0/8, fd00::/8), each with or without a port; separated by commas or blanks.
 */
export function isExempt(origin: string, list: string): boolean {
  const { hostname, port, protocol } = new URL(origin);
  const host = bare(hostname);
  const hostPort = port === "" ? (protocol === "https:" ? "443" : "80") : port;
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== "")
    .some((entry) => entry === "*" || matches(entry.toLowerCase(), host, hostPort));
}

function matches(entry: string, host: string, port: string): boolean {
  const range = /^\[?([0-9a-f.:]+)\]?\/(\d{1,3})$/.exec(entry);
  if (range !== null) return inRange(host, range[1] ?? "", Number(range[2]));
  const [, bracketed, plain, entryPort] =
    isIP(entry) === 6 ? [entry, entry] : (/^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? []);
  const name = bare(bracketed ?? plain ?? "");
  if (name === "" || (entryPort !== undefined && entryPort !== port)) return false;
  if (isIP(name) !== 0 || isIP(host) !== 0) return isIP(name) !== 0 && sameAddress(name, host);
  return host === name || host.endsWith(`.${name}`);
}

/** Without brackets, leading dots (and `*.`) and the dot of the root. */
function bare(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/^\*?\.+/, "")
    .replace(/\.$/, "");
}

function sameAddress(one: string, other: string): boolean {
  return inRange(other, one, isIP(one) === 6 ? 128 : 32);
}

function inRange(host: string, network: string, bits: number): boolean {
  const family = isIP(network);
  if (family === 0 || isIP(host) !== family || bits > (family === 6 ? 128 : 32)) return false;
  const type = family === 6 ? "ipv6" : "ipv4";
  const ranges = new BlockList();
  ranges.addSubnet(network, bits, type);
  return ranges.check(host, type);
}
