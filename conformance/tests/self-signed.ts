/** A certificate of 127.0.0.1 that signs itself. For tests. */
import { generateKeyPairSync } from "node:crypto";
import forge from "node-forge";

export function selfSigned(): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  const certificate = forge.pki.createCertificate();
  const name = [{ name: "commonName", value: "kit" }];
  certificate.publicKey = forge.pki.publicKeyFromPem(publicKey);
  certificate.validity.notBefore = new Date(Date.now() - 86_400_000);
  certificate.validity.notAfter = new Date(Date.now() + 86_400_000);
  certificate.setSubject(name);
  certificate.setIssuer(name);
  certificate.setExtensions([{ name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] }]);
  certificate.sign(forge.pki.privateKeyFromPem(privateKey), forge.md.sha256.create());
  return { cert: forge.pki.certificateToPem(certificate), key: privateKey };
}
