import { isIPv4, isIPv6 } from "node:net";

/**
 * The network of an address, which says where a caller is without naming a person's machine: 24 bits
 * of IPv4, also where it comes mapped into IPv6, and 48 of IPv6, which is what a site is given.
 *
 * @returns in the notation of RFC 4632 and RFC 5952; null for what is no address
 */
export function networkOf(address: string): string | null {
  const v4 = withoutMapping(address);
  return isIPv4(v4) ? `${v4.replace(/\d+$/, "0")}/24` : ipv6Network(address, 3);
}

/** Who is held to a limit by address: an address of IPv4, and 64 bits of IPv6, in which a host chooses freely. */
export function limitHolderOf(address: string): string {
  const v4 = withoutMapping(address);
  return isIPv4(v4) ? v4 : (ipv6Network(address, 4) ?? "");
}

/** The host by which this machine reaches what listens on an address: listening on all, it is reached on its own. */
export function hostInUrl(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}

function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

function ipv6Network(address: string, groupCount: number): string | null {
  const [v6 = ""] = address.split("%"); // without the zone of a link-local address
  if (!isIPv6(v6)) return null;
  const [head = [], tail = []] = v6
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== ""));
  const groups = head.length + tail.length + (v6.includes(".") ? 1 : 0);
  const whole = [...head, ...Array(8 - groups).fill("0"), ...tail];
  const { hostname } = new URL(`http://[${whole.slice(0, groupCount).join(":")}::]`);
  return `${hostname.slice(1, -1)}/${groupCount * 16}`;
}
