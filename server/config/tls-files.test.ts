import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { selfSignedCertificate } from "../tests/support/http/self-signed-certificate.ts";
import { temporaryDirectory } from "../tests/support/service/server-process.ts";
import { readConfig } from "./config.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

function write(name: string, text: string): string {
  writeFileSync(`${directory.path}/${name}`, text);
  return `${directory.path}/${name}`;
}
const [one, other] = [selfSignedCertificate(), selfSignedCertificate()];
const cert = write("cert.pem", one.cert);
const key = write("key.pem", one.key);
const otherKey = write("other.pem", other.key);
const cutOffChain = write("chain.pem", `${one.cert}${other.cert.slice(0, 500)}`);

test.each([
  ["a key of another certificate", cert, otherKey, ["TLS_KEY_FILE", "not the key of TLS_CERT_FILE"]],
  [
    "the files in each other's place",
    key,
    cert,
    ["TLS_CERT_FILE", "no PEM of a certificate", "TLS_KEY_FILE"],
  ],
  ["no key", cert, "", ["TLS_KEY_FILE", "set it too"]],
  ["no certificate", "", key, ["TLS_CERT_FILE", "set it too"]],
  ["a chain that is cut off in its second certificate", cutOffChain, key, ["TLS_CERT_FILE", "cannot use it"]],
  ["a device", "/dev/zero", key, ["TLS_CERT_FILE", "not a regular file"]],
  ["the text of a key in place of its path", cert, one.key, ["TLS_KEY_FILE", "must be the path of a file"]],
  ["a file that is not there", `${directory.path}/none.pem`, key, ["TLS_CERT_FILE", "cannot be read"]],
])(
  "%s is refused by the name of the setting, and the message holds no key",
  (_, tlsCertFile, tlsKeyFile, says) => {
    const result = readConfig({ tlsCertFile, tlsKeyFile });
    const faults = result.ok ? "" : result.faults.join();
    for (const words of says) expect(faults).toContain(words);
    expect(faults).not.toContain("PRIVATE KEY");
  },
);

test.each([
  ["a certificate", one.cert],
  ["a chain of certificates", one.cert + other.cert],
])("%s with its key is read", (_, chain) => {
  const result = readConfig({ tlsCertFile: write("good.pem", chain), tlsKeyFile: key });
  expect(result).toMatchObject({ ok: true, value: { tls: { cert: chain, key: one.key } } });
});
