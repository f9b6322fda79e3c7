/**
 * A private certificate authority for one test, and a server certificate of it for 127.0.0.1 and localhost.
 */
import { generateKeyPairSync } from "node:crypto";
import forge from "node-forge";

/** PEM texts. */
export type Certificates = { ca: string; certificate: string; key: string };

export function makeCertificates(): Certificates {
  const authority = keyPair();
  const server = keyPair();
  const ca = certificate("customers test authority", authority.public, [
    { name: "basicConstraints", cA: true, critical: true },
    { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    { name: "subjectKeyIdentifier" },
  ]);
  ca.setIssuer(ca.subject.attributes);
  ca.sign(authority.private, forge.md.sha256.create());
  const leaf = certificate("localhost", server.public, [
    { name: "basicConstraints", cA: false },
    { name: "extKeyUsage", serverAuth: true, clientAuth: true },
    {
      name: "subjectAltName",
      altNames: [
        { type: 2, value: "localhost" },
        { type: 7, ip: "127.0.0.1" },
      ],
    },
  ]);
  leaf.setIssuer(ca.subject.attributes);
  leaf.sign(authority.private, forge.md.sha256.create());
  return {
    ca: forge.pki.certificateToPem(ca),
    certificate: forge.pki.certificateToPem(leaf),
    key: server.pem,
  };
}

/** node:crypto draws the keys: forge alone needs seconds for one. */
function keyPair() {
  const pem = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  return {
    pem: pem.privateKey,
    public: forge.pki.publicKeyFromPem(pem.publicKey),
    private: forge.pki.privateKeyFromPem(pem.privateKey),
  };
}

function certificate(
  commonName: string,
  key: forge.pki.PublicKey,
  extensions: object[],
): forge.pki.Certificate {
  const made = forge.pki.createCertificate();
  made.publicKey = key;
  made.serialNumber = `01${forge.util.bytesToHex(forge.random.getBytesSync(8))}`;
  made.validity.notBefore = new Date(Date.now() - 86_400_000);
  made.validity.notAfter = new Date(Date.now() + 86_400_000);
  made.setSubject([{ name: "commonName", value: commonName }]);
  made.setExtensions(extensions);
  return made;
}
