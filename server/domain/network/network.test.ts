import { expect, test } from "bun:test";
import { limitHolderOf, networkOf } from "./network.ts";

test.each([
  ["192.0.2.77", "192.0.2.0/24"],
  ["127.0.0.1", "127.0.0.0/24"],
  ["::ffff:192.0.2.77", "192.0.2.0/24"],
  ["::FFFF:192.0.2.77", "192.0.2.0/24"],
  ["2001:db8:aaaa:bbbb:1:2:3:4", "2001:db8:aaaa::/48"],
  ["2001:DB8::1", "2001:db8::/48"],
  ["2001:db8:0:1::1", "2001:db8::/48"],
  ["fe80::1%eth0", "fe80::/48"],
  ["::1", "::/48"],
  ["::1:2:3:4:5:6:7", "0:1:2::/48"],
  ["1:2:3:4:5:6:7::", "1:2:3::/48"],
  ["::2:3:4:5:192.0.2.1", "0:0:2::/48"],
])("%s is in %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});

test.each(["", "localhost", "192.0.2", "192.0.2.256", "::g", "1:2", "[::1]"])("%j is no address", (text) => {
  expect(networkOf(text)).toBeNull();
});

test.each([
  ["192.0.2.77", "192.0.2.77"],
  ["::ffff:192.0.2.77", "192.0.2.77"],
  ["2001:db8:aaaa:bbbb:1:2:3:4", "2001:db8:aaaa:bbbb::/64"],
  ["2001:DB8:aaaa:bbbb::", "2001:db8:aaaa:bbbb::/64"],
  ["2001:db8::1", "2001:db8::/64"],
  ["", ""],
])("a limit by address holds %j to that of %j", (address, holder) => {
  expect(limitHolderOf(address)).toBe(holder);
});
