import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { selfSignedCertificate } from "../tests/support/self-signed-certificate.ts";
import { temporaryDirectory } from "../tests/support/server-process.ts";
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

test("a certificate with its key is read", () => {
  const result = readConfig({ tlsCertFile: cert, tlsKeyFile: key });
  expect(result).toMatchObject({ ok: true, value: { tls: { cert: one.cert, key: one.key } } });
});
