/** ETG: the token itself, and the reads and writes that carry it (2.4, 3, 4.1). */
import { createHash } from "node:crypto";
import { deciding, type Fault, isCustomer, isRead, replying } from "../fault.ts";
import { type Request, setHeader } from "../service/http-socket.ts";
import { soundSeams } from "../service/seams.ts";

const digest = (text: string, algorithm = "sha1") => createHash(algorithm).update(text).digest("hex");

export const ENTITY_TAG_FAULTS: Fault[] = [
  {
    id: "read-without-etag",
    rule: "ETG-01",
    does: "answers a GET without ETag",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 200,
      (reply) => setHeader(reply, "ETag", undefined),
    ),
  },
  {
    id: "projected-read-without-etag",
    rule: "ETG-05",
    does: "sends the ETag on full reads only, not on those with fields",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 200 && /fields=/.test(request.query),
      (reply) => setHeader(reply, "ETag", undefined),
    ),
  },
  {
    id: "weak-etag",
    rule: "ETG-03",
    does: "sends every tag weak, as frameworks do by default",
    plant: (ran) => () => ({
      mint(version) {
        ran();
        return `W/"${version}"`;
      },
    }),
  },
  {
    id: "unquoted-etag",
    rule: "ETG-02",
    does: "sends the bare token without quotes",
    plant: (ran) => () => ({
      mint(version) {
        ran();
        return `v${version}`;
      },
    }),
  },
  {
    id: "single-quoted-etag",
    rule: "ETG-02",
    does: "wraps the token in single quotes",
    plant: (ran) => () => ({
      mint(version) {
        ran();
        return `'v${version}'`;
      },
    }),
  },
  {
    id: "etag-with-space",
    rule: "ETG-02",
    does: "puts a date with spaces between the quotes",
    plant: (ran) => () => ({
      mint(version) {
        ran();
        return `"27 Nov 2026 ${version}"`;
      },
    }),
  },
  {
    id: "etag-twice",
    rule: "ETG-02",
    does: "sends two ETag lines, the framework's own beside the service's",
    plant: replying(
      (reply, request) => isRead(request) && reply.status === 200,
      (reply) => ({
        ...reply,
        headers: [...reply.headers, ["ETag", `"${digest(String(reply.body)).slice(0, 12)}"`]],
      }),
    ),
  },
  {
    id: "etag-of-body",
    rule: "ETG-05",
    does: "hashes the serialized, projected body, and compares with the hash of the full one",
    plant: (ran) => (service) => {
      const sound = soundSeams(service.deployment);
      const hash = (...from: Parameters<typeof sound.shape>) =>
        `"${digest(JSON.stringify(sound.shape(...from)))}"`;
      return {
        mint: (_version, _before, after) =>
          hash(after, service.deployment.defaultFields, "main", { method: "GET" } as Request),
        shownTag(customer, fields, caller, request) {
          if (fields === "default") return customer.tag;
          ran();
          return hash(customer, fields, caller, request);
        },
      };
    },
  },
  {
    id: "etag-varies-with-fields",
    rule: "ETG-05",
    does: "appends the number of selected fields to the tag",
    plant: deciding("shownTag", (_sound, ran) => (customer, fields) => {
      if (fields === "default") return customer.tag;
      ran();
      return customer.tag.replace(/"$/, `-${fields.length}"`);
    }),
  },
  {
    id: "etag-of-three-fields",
    rule: "ETG-05",
    does: "shows another tag when three fields are selected",
    plant: deciding("shownTag", (_sound, ran) => (customer, fields) => {
      if (fields.length !== 3) return customer.tag;
      ran();
      return customer.tag.replace(/"$/, '-3"');
    }),
  },
  {
    id: "etag-leaks-email",
    rule: "ETG-13",
    does: "puts the email into the tag",
    plant: deciding("mint", (_sound, ran) => (version, _before, after) => {
      ran();
      return `"${after.email}:${version}"`;
    }),
  },
  {
    id: "etag-encodes-email",
    rule: "ETG-13",
    does: "base64-encodes the email and the version into the tag",
    plant: deciding("mint", (_sound, ran) => (version, _before, after) => {
      ran();
      return `"${Buffer.from(`${after.email}|${version}`).toString("base64")}"`;
    }),
  },
  ...(["md5", "sha1", "sha256"] as const).map(
    (algorithm): Fault => ({
      id: `etag-is-${algorithm}-of-email`,
      rule: "ETG-13",
      does: `carries the raw ${algorithm} of the email beside a version`,
      plant: deciding("mint", (_sound, ran) => (version, _before, after) => {
        ran();
        return `"${digest(after.email, algorithm)}-${version}"`;
      }),
    }),
  ),
  {
    id: "row-version-in-body",
    rule: "ETG-14",
    does: "shows the row version as a body field of full reads",
    plant: deciding("shape", (sound, ran) => (customer, shown, caller, request) => {
      const body = sound(customer, shown, caller, request);
      if (!isCustomer(request) || /fields=/.test(request.query)) return body;
      ran();
      return { ...body, RowVersion: customer.tag.slice(1, -1) };
    }),
  },
];
