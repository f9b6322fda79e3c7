import { generateKeyPairSync } from "node:crypto";
import forge from "node-forge";

/** A certificate for 127.0.0.1 and localhost that signs itself, and its key, as PEM. */
export function selfSignedCertificate({ validForDays = 1 } = {}): {
  readonly cert: string;
  readonly key: string;
} {
  // node:crypto draws the key: forge needs seconds for one.
  const { publicKey, privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  const certificate = forge.pki.createCertificate();
  const name = [{ name: "commonName", value: "localhost" }];
  certificate.publicKey = forge.pki.publicKeyFromPem(publicKey);
  certificate.validity.notBefore = new Date(Date.now() - 86_400_000);
  certificate.validity.notAfter = new Date(Date.now() + validForDays * 86_400_000);
  certificate.setSubject(name);
  certificate.setIssuer(name);
  certificate.setExtensions([
    {
      name: "subjectAltName",
      altNames: [
        { type: 2, value: "localhost" },
        { type: 7, ip: "127.0.0.1" },
      ],
    },
  ]);
  certificate.sign(forge.pki.privateKeyFromPem(privateKey), forge.md.sha256.create());
  return { cert: forge.pki.certificateToPem(certificate), key: privateKey };
}
