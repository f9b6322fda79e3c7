import { describe, expect, test } from "bun:test";
import { networkFault, TrustedProxies } from "./trusted-proxies.ts";

const proxies = new TrustedProxies(["10.0.0.0/8", "2001:db8:ffff::/48", "192.0.2.1"]);
const PEER = "10.0.0.1";

function viaForwarded(forwarded: string, peer = PEER): string {
  return proxies.clientOf(peer, { forwarded, xForwardedFor: null });
}
function viaForwardedFor(xForwardedFor: string, peer = PEER): string {
  return proxies.clientOf(peer, { forwarded: null, xForwardedFor });
}

describe("the client's address", () => {
  test.each([
    ["203.0.113.7", "203.0.113.7"],
    ["203.0.113.7:4711", "203.0.113.7"],
    ["2001:db8::7", "2001:db8::7"],
    ["2001:DB8:0:0::0:7", "2001:db8::7"],
    ["[2001:db8::7]", "2001:db8::7"],
    ["[2001:db8::7]:4711", "2001:db8::7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["[::FFFF:cb00:7107]:80", "203.0.113.7"],
    ["203.0.113.7, 10.0.0.2", "203.0.113.7"],
    ["203.0.113.7,2001:db8:ffff::1\t, ::ffff:10.0.0.2, 192.0.2.1", "203.0.113.7"],
    // What stands left of the first that is no proxy was sent by it.
    ["1.1.1.1, 203.0.113.7", "203.0.113.7"],
    ["10.0.0.9, 203.0.113.7, 10.0.0.2", "203.0.113.7"],
    ['", unknown, <script>, 203.0.113.7', "203.0.113.7"],
    // A request of a proxy itself.
    ["10.0.0.3, 10.0.0.2", "10.0.0.3"],
  ])("is the first from the right of X-Forwarded-For that is no trusted proxy: %s", (header, address) => {
    expect(viaForwardedFor(header)).toBe(address);
  });

  test.each([
    ["for=203.0.113.7", "203.0.113.7"],
    ["For=203.0.113.7;proto=https;by=10.0.0.1", "203.0.113.7"],
    ['for="203.0.113.7:4711"', "203.0.113.7"],
    ['by=_a;for="[2001:db8::7]:4711" ; proto=http', "2001:db8::7"],
    ['for="[2001:db8::7]:_port"', "2001:db8::7"],
    ['for="[::ffff:203.0.113.7]"', "203.0.113.7"],
    ["for=203.0.113.7;, for=10.0.0.2", "203.0.113.7"],
    ['for=1.1.1.1, for=203.0.113.7;host="a;for=2.2.2.2", for=10.0.0.2', "203.0.113.7"],
    // A quote that a client leaves open swallows nothing of what its proxy appends.
    ['for=1.1.1.1;by=", for="[2001:db8::7]"', "2001:db8::7"],
  ])("is the first from the right of Forwarded that is no trusted proxy: %s", (header, address) => {
    expect(viaForwarded(header)).toBe(address);
  });

  test.each([
    "",
    ",",
    "unknown",
    "_hidden",
    "203.0.113",
    "203.0.113.7:",
    "203.0.113.7:123456",
    "[2001:db8::7",
    "2001:db8::7]",
    "[203.0.113.7]:x",
    "203.0.113.7 10.0.0.2",
    "fe80::1%eth0",
    'fe80::1%"',
    "010.0.0.2",
    "\n",
  ])("is that of the last trusted proxy where X-Forwarded-For has %j", (entry) => {
    expect(viaForwardedFor(`203.0.113.7, ${entry}, 10.0.0.2`)).toBe("10.0.0.2");
    expect(viaForwardedFor(entry)).toBe(PEER);
  });

  test.each([
    "",
    "for",
    "for=",
    "for=unknown",
    "for=_hidden",
    "proto=https",
    "for=1.1.1.1;for=2.2.2.2",
    "for=[2001:db8::7]",
    'for="1.1.1.1',
    "for=1.1.1.1 proto=http",
    'for="\\1.1.1.1"',
    'host="a, for=1.1.1.1"',
    'host="a, for=1.1.1.1;x="',
    'host="a, for=1.1.1.1;x=";proto="https"',
    'host="a, for=1.1.1.1;x=\\"";by="b"',
  ])("is that of the last trusted proxy where Forwarded has %j", (element) => {
    expect(viaForwarded(`for=203.0.113.7, ${element}, for=10.0.0.2`)).toBe("10.0.0.2");
    expect(viaForwarded(element)).toBe(PEER);
  });

  test.each(["203.0.113.9", "::1", "2001:db8::1", "", "::ffff:203.0.113.9"])(
    "is the peer's, whatever the headers say, where the peer is no trusted proxy: %j",
    (peer) => {
      expect(viaForwarded("for=203.0.113.7", peer)).toBe(peer);
      expect(viaForwardedFor("203.0.113.7", peer)).toBe(peer);
    },
  );

  test.each(["10.255.255.255", "::ffff:10.0.0.1", "::ffff:a00:1", "192.0.2.1", "2001:db8:ffff:1::%eth0"])(
    "is read from the headers of a trusted proxy, however its address is written: %s",
    (peer) => {
      expect(viaForwardedFor("203.0.113.7", peer)).toBe("203.0.113.7");
    },
  );

  test("is the proxy's where no header comes, and where two lead to different addresses", () => {
    const clientOf = (forwarded: string | null, xForwardedFor: string | null) =>
      proxies.clientOf(PEER, { forwarded, xForwardedFor });
    expect(clientOf(null, null)).toBe(PEER);
    expect(clientOf("for=1.1.1.1", "203.0.113.7")).toBe(PEER);
    expect(clientOf("for=1.1.1.1", "unknown")).toBe(PEER);
    expect(clientOf('for="[::ffff:203.0.113.7]:1"', "1.1.1.1, 203.0.113.7")).toBe("203.0.113.7");
  });

  test("is looked for in the last 32 entries alone", () => {
    const hops = (count: number) => ["203.0.113.7", ...Array(count).fill("10.0.0.2")];
    expect(viaForwardedFor(hops(31).join(", "))).toBe("203.0.113.7");
    expect(viaForwardedFor(hops(32).join(", "))).toBe("10.0.0.2");
    expect(viaForwardedFor(hops(10_000).join(","))).toBe("10.0.0.2");
    expect(
      viaForwarded(
        hops(10_000)
          .map((hop) => `for=${hop}`)
          .join(","),
      ),
    ).toBe("10.0.0.2");
  });
});

test.each([
  ["10.0.0.0/8", null],
  ["127.0.0.1", null],
  ["::1", null],
  ["2001:db8::/32", null],
  ["10.0.0.0/33", "has too many bits"],
  ["2001:db8::/129", "has too many bits"],
  ["0.0.0.0/0", "would let every client choose its address"],
  ["::/0", "would let every client choose its address"],
  ["::ffff:10.0.0.0/104", "must be written as IPv4"],
  ["10.0.0.0/", "is no network"],
  ["10.0.0.0/8/8", "is no network"],
  ["10.0.0.0/-1", "is no network"],
  ["10.0.0.0/255.0.0.0", "is no network"],
  ["10.0.0/8", "is no network"],
  ["10.0.0.0/08", "is no network"],
  ["10.0.0.1/32", null],
  ["10.128.0.0/9", null],
  ["2001:db8::1/128", null],
  ["2001:DB8:0::/33", null],
  [
    "10.0.0.1/8",
    "has bits behind its first 8; write 10.0.0.1 for this address alone, or 10.0.0.0/8 for the network",
  ],
  [
    "192.168.7.130/25",
    "has bits behind its first 25; write 192.168.7.130 for this address alone, or 192.168.7.128/25 for the network",
  ],
  [
    "2001:db8:0:ffff::1/60",
    "has bits behind its first 60; write 2001:db8:0:ffff::1 for this address alone, or 2001:db8:0:fff0::/60 for the network",
  ],
  ["proxy.example", "is no network"],
  ["fe80::1%eth0", "is no network"],
  ["[::1]", "is no network"],
])("the network %s: %s", (network, fault) => {
  expect(networkFault(network)).toBe(fault);
});
