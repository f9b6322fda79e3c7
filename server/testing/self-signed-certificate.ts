import { generateKeyPairSync, sign } from "node:crypto";

type Pem = { readonly cert: string; readonly key: string };

/** A certificate for 127.0.0.1 and localhost that signs itself (RFC 5280), for tests of TLS. */
export function selfSignedCertificate(): Pem {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const ecdsaWithSha256 = sequence(objectId("2a8648ce3d040302"));
  const name = sequence(set(sequence(objectId("550403"), tagged(0x0c, Buffer.from("localhost")))));
  const validity = sequence(utcTime("250101000000Z"), utcTime("491231235959Z"));
  const alternativeNames = sequence(
    tagged(0x82, Buffer.from("localhost")),
    tagged(0x87, Buffer.from([127, 0, 0, 1])),
  );
  const extensions = sequence(sequence(objectId("551d11"), tagged(0x04, alternativeNames)));
  const toBeSigned = sequence(
    tagged(0xa0, integer(2)), // version 3
    integer(1),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, extensions),
  );
  const signature = sign("sha256", toBeSigned, privateKey);
  const certificate = sequence(
    toBeSigned,
    ecdsaWithSha256,
    tagged(0x03, Buffer.concat([Buffer.from([0]), signature])),
  );
  const base64 = certificate.toString("base64").replace(/(.{64})/g, "$1\n");
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** Distinguished encoding (ITU-T X.690) of a tag, a length below 65,536, and content. */
function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const lengthBytes =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...lengthBytes]), content]);
}

const sequence = (...parts: Buffer[]): Buffer => tagged(0x30, Buffer.concat(parts));
const set = (...parts: Buffer[]): Buffer => tagged(0x31, Buffer.concat(parts));
const integer = (value: number): Buffer => tagged(0x02, Buffer.from([value]));
const objectId = (hex: string): Buffer => tagged(0x06, Buffer.from(hex, "hex"));
const utcTime = (text: string): Buffer => tagged(0x17, Buffer.from(text));
