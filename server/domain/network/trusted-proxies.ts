import { BlockList, isIPv4, isIPv6 } from "node:net";

/** Longer chains of proxies are not known to exist; it bounds the work for a header of 16 KiB. */
const HOPS_MAX = 32;

/** What a request says of the addresses that it came from. Lines of one header are joined with commas. */
type ForwardingHeaders = { readonly forwarded: string | null; readonly xForwardedFor: string | null };

/** The proxies whose word is taken for where a request came from. */
export class TrustedProxies {
  readonly #networks = new BlockList();

  /** @param networks each of which {@link networkFault} finds none in */
  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const { address, bits } = partsOf(network);
      this.#networks.addSubnet(address, bits, isIPv4(address) ? "ipv4" : "ipv6");
    }
  }

  /**
   * The address of the client. The headers are read from the right, since each proxy appends to what it was
   * sent: the first address that is no trusted proxy is the client's, and a client may invent all to the left
   * of it. An entry that is no address (`unknown`, `_hidden`, a malformed one) ends the walk at the last
   * trusted proxy.
   *
   * A proxy that writes one header often passes the other on as a client sent it. Where both come and
   * lead to different addresses, neither is believed.
   *
   * @param peer the connection's other end @returns the peer itself unless it is a trusted proxy
   */
  clientOf(peer: string, { forwarded, xForwardedFor }: ForwardingHeaders): string {
    const [withoutZone = ""] = peer.split("%");
    const proxy = plainAddress(withoutZone);
    if (proxy === null || !this.#has(proxy)) return peer;
    const named = [
      ...(forwarded === null ? [] : [this.#walk(proxy, forwarded, forNode)]),
      ...(xForwardedFor === null ? [] : [this.#walk(proxy, xForwardedFor, (entry) => entry.trim())]),
    ];
    const [client = proxy, other = client] = named;
    return client === other ? client : proxy;
  }

  /**
   * Commas in quoted strings are taken for those between entries. Such a part has an odd number of quotes, which
   * is malformed, so nothing inside a quoted string is ever taken for an entry of its own.
   */
  #walk(proxy: string, list: string, nodeOf: (entry: string) => string | null): string {
    let last = proxy;
    let end = list.length;
    for (let hop = 0; hop < HOPS_MAX && end >= 0; hop += 1) {
      const comma = end === 0 ? -1 : list.lastIndexOf(",", end - 1);
      const address = addressOfNode(nodeOf(list.slice(comma + 1, end)) ?? "");
      if (address === null) return last;
      last = address;
      if (!this.#has(address)) return last;
      end = comma;
    }
    return last;
  }

  #has(address: string): boolean {
    return this.#networks.check(address, isIPv4(address) ? "ipv4" : "ipv6");
  }
}

/** @returns what is wrong with a network as RFC 4632 and RFC 4291 write it, or with an address; null for nothing */
export function networkFault(network: string): string | null {
  const { address, bits } = partsOf(network);
  if (plainAddress(address) === null || /\/(?!(?:0|[1-9]\d{0,2})$)/.test(network)) return "is no network";
  if (isIPv6(address) && isIPv4(plainAddress(address) ?? "")) return "must be written as IPv4";
  if (bits > (isIPv4(address) ? 32 : 128)) return "has too many bits";
  if (bits === 0) return "would let every client choose its address";
  const first = firstAddress(address, bits);
  if (first === plainAddress(address)) return null;
  return `has bits behind its first ${bits}; write ${address} for this address alone, or ${first}/${bits} for the network`;
}

/** @returns the first address of a network, whose bits behind its first ones are 0 */
function firstAddress(address: string, bits: number): string | null {
  const isV4 = isIPv4(address);
  const groupBits = isV4 ? 8 : 16;
  const groups = isV4 ? address.split(".").map(Number) : groupsOf(address);
  const kept = groups.map((group, index) => {
    const hostBits = Math.min(Math.max((index + 1) * groupBits - bits, 0), groupBits);
    return (group >> hostBits) << hostBits;
  });
  return plainAddress(isV4 ? kept.join(".") : kept.map((group) => group.toString(16)).join(":"));
}

/** @param address of IPv6 @returns its eight groups */
function groupsOf(address: string): readonly number[] {
  const [head = [], tail = []] = (plainAddress(address) ?? "")
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(8 - head.length - tail.length).fill("0");
  return [...head, ...zeros, ...tail].map((group) => Number.parseInt(group, 16));
}

function partsOf(network: string): { readonly address: string; readonly bits: number } {
  const [address = "", bits = isIPv4(address) ? "32" : "128"] = network.split("/");
  return { address, bits: Number(bits) };
}

const TOKEN = "[!#$%&'*+.^_`|~\\w-]+";
/** A parameter of an element of Forwarded (RFC 7239, section 4), up to its semicolon or the end. */
const PARAMETER = new RegExp(
  `[ \\t]*(?:(${TOKEN})=(?:(${TOKEN})|"((?:[^"\\\\]|\\\\.)*)"))?[ \\t]*(?:;|$)`,
  "y",
);

/** @returns the value of `for`; null where the element is malformed or has not one */
function forNode(element: string): string | null {
  const nodes: string[] = [];
  PARAMETER.lastIndex = 0;
  while (PARAMETER.lastIndex < element.length) {
    const parameter = PARAMETER.exec(element);
    if (parameter === null) return null;
    const [, name = "", token, quoted = ""] = parameter;
    if (name.toLowerCase() === "for") nodes.push(token ?? quoted);
  }
  const [node = null, ...more] = nodes;
  return more.length === 0 ? node : null;
}

const WITH_PORT = /^(?:([\d.]+)|\[([^\]]*)\])(?::(?:\d{1,5}|_[\w.-]+))?$/;

/** @param node `192.0.2.1`, `2001:db8::1` or `[2001:db8::1]`, the first and last also with a port */
function addressOfNode(node: string): string | null {
  const [, v4, v6] = WITH_PORT.exec(node) ?? [];
  return plainAddress(v4 ?? v6 ?? node);
}

/** @returns as RFC 5952 writes it, and IPv4 that is mapped into IPv6 as IPv4; null for what is no address */
function plainAddress(text: string): string | null {
  if (isIPv4(text)) return text;
  if (!isIPv6(text) || text.includes("%")) return null;
  const address = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(address) ?? [];
  if (high === undefined || low === undefined) return address;
  return [high, low]
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 255])
    .join(".");
}
