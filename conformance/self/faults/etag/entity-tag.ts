/** ETG: the token itself, and the reads and writes that carry it (2.4, 3, 4.1). */
import { createHash } from "node:crypto";
import { type Fault, instead, isCustomer, type Plant } from "../../fault.ts";
import { getHeader, type Request } from "../../service/http-socket.ts";
import { type Customer, soundSeams } from "../../service/seams.ts";
import {
  as,
  by,
  byHead,
  newTag,
  on,
  projectedRead,
  read,
  showing,
  spoiling,
  tagged,
  untagged,
  type When,
  weakened,
  wholeRead,
} from "../../turn.ts";
import { sends } from "../reads/conditional-reads.ts";

export const digest = (text: string, algorithm = "sha1") => createHash(algorithm).update(text).digest("hex");

/** Makes every tag in another way. */
const tagsLike = (tag: (version: number, customer: Customer) => string): Plant =>
  instead("mint", (_sound, version, _before, after) => tag(version, after));

/** Shows another tag where fields are selected. */
const shownTag = (suffix: (count: number) => string): Plant =>
  instead("shownTag", (sound, _customer, fields) =>
    fields === "default" ? sound : sound?.replace(/"$/, `${suffix(fields.length)}"`),
  );

/** What a module before the service makes a part of the tag. */
const ASKED: readonly (readonly [id: string, does: string, when: When])[] = [
  [
    "by-parameter",
    "makes the query a part of the tag, as a cache does",
    ({ request }) => /kit=/.test(request.query),
  ],
  ["by-accept", "makes the media type that is accepted a part of the tag", sends("accept", /xml/)],
  ["by-language", "makes the language a part of the tag", sends("accept-language")],
];

export const ENTITY_TAG_FAULTS: Fault[] = [
  {
    id: "read-without-etag",
    rule: "ETG-01",
    does: "answers a GET without ETag",
    plant: on(read()).answers(untagged),
  },
  {
    id: "head-without-etag",
    rule: "ETG-05",
    does: "answers HEAD from a handler of its own, which asks whether the row exists and sends no ETag",
    plant: on(read(), byHead).answers(untagged),
  },
  {
    id: "head-etag-without-quotes",
    rule: "ETG-05",
    does: "sends the bare version as the ETag of HEAD",
    plant: on(read(), byHead).answers(tagged(({ customer }) => customer?.tag.slice(1, -1))),
  },
  {
    id: "head-from-cache",
    rule: "ENV-04",
    does: "answers HEAD from a copy that is renewed with every fifth write",
    plant: on(read(), byHead, ({ customer }) => (customer?.formerTags.length ?? 0) % 5 > 0).answers(
      tagged(({ customer }) => {
        const tags = customer?.formerTags ?? [];
        return tags[tags.length - (tags.length % 5)];
      }),
    ),
  },
  {
    id: "read-of-other-tenant-without-etag",
    rule: "ETG-01",
    does: "serves the tenants that came later from another handler, which sends no ETag",
    plant: on(read(), by("other")).answers(untagged),
  },
  {
    id: "projected-read-without-etag",
    rule: "ETG-05",
    does: "sends the ETag on full reads only, not on those with fields",
    plant: on(projectedRead).answers(untagged),
  },
  {
    id: "weak-etag",
    rule: "ETG-03",
    does: "sends every tag weak, as frameworks do by default",
    plant: tagsLike((version) => `W/"${version}"`),
  },
  {
    id: "unquoted-etag",
    rule: "ETG-02",
    does: "sends the bare token without quotes",
    plant: tagsLike((version) => `v${version}`),
  },
  {
    id: "single-quoted-etag",
    rule: "ETG-02",
    does: "wraps the token in single quotes",
    plant: tagsLike((version) => `'v${version}'`),
  },
  {
    id: "etag-with-space",
    rule: "ETG-02",
    does: "puts a date with spaces between the quotes",
    plant: tagsLike((version) => `"27 Nov 2026 ${version}"`),
  },
  {
    id: "etag-twice",
    rule: "ETG-02",
    does: "sends two ETag lines, the framework's own beside the service's",
    plant: on(read()).answers(({ reply }) => ({
      ...reply,
      headers: [...reply.headers, ["ETag", `"${digest(String(reply.body)).slice(0, 12)}"`]],
    })),
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
    plant: shownTag((count) => `-${count}`),
  },
  {
    id: "etag-of-three-fields",
    rule: "ETG-05",
    does: "shows another tag when three fields are selected",
    plant: shownTag((count) => (count === 3 ? "-3" : "")),
  },
  {
    id: "etag-leaks-email",
    rule: "ETG-13",
    does: "puts the email into the tag",
    plant: tagsLike((version, { email }) => `"${email}:${version}"`),
  },
  {
    id: "etag-encodes-email",
    rule: "ETG-13",
    does: "base64-encodes the email and the version into the tag",
    plant: tagsLike((version, { email }) => `"${Buffer.from(`${email}|${version}`).toString("base64")}"`),
  },
  ...(["md5", "sha1", "sha256"] as const).map(
    (algorithm): Fault => ({
      id: `etag-is-${algorithm}-of-email`,
      rule: "ETG-13",
      does: `carries the raw ${algorithm} of the email beside a version`,
      plant: tagsLike((version, { email }) => `"${digest(email, algorithm)}-${version}"`),
    }),
  ),
  {
    id: "etag-holds-domain",
    rule: "ETG-13",
    does: "puts the domain of the email into the tag, to shard by it",
    plant: tagsLike((version, { email }) => `"${email.replace(/.*@/, "")}-${version}"`),
  },
  {
    id: "etag-rotates-email",
    rule: "ETG-13",
    does: "hides the email in the tag by ROT13",
    plant: tagsLike(
      (version, { email }) =>
        `"${email.replace(/[a-z]/g, (letter) => String.fromCharCode(((letter.charCodeAt(0) - 84) % 26) + 97))}-${version}"`,
    ),
  },
  {
    id: "etag-holds-short-hash",
    rule: "ETG-19",
    does: "puts the first four digits of a hash of the body before a version",
    plant: tagsLike((version, { name, email }) => `"${digest(name + email, "md5").slice(0, 4)}-${version}"`),
  },
  {
    id: "etag-reverses-email",
    rule: "ETG-19",
    does: "writes the email backwards behind a version",
    plant: tagsLike((version, { email }) => `"${version}-${[...email].reverse().join("")}"`),
  },
  {
    id: "etag-is-sha1-of-id-and-email",
    rule: "ETG-13",
    does: "carries a hash of the email with the id for its salt, which everybody knows",
    plant: tagsLike((version, { id, email }) => `"${digest(id + email, "sha1")}-${version}"`),
  },
  ...(
    [
      ["version-number-in-body", "as a number", (version: number) => version],
      [
        "version-bytes-in-body",
        "as its bytes in hexadecimal",
        (version: number) => `0x${version.toString(16).padStart(16, "0")}`,
      ],
    ] as const
  ).map(
    ([id, how, shown]): Fault => ({
      id,
      rule: "ETG-14",
      does: `shows the row version under another name, ${how}`,
      deployment: {
        tag: (version) =>
          `"${Buffer.from(version.toString(16).padStart(16, "0"), "hex").toString("base64")}"`,
      },
      plant: instead("shape", (body, { version }, _shown, _caller, request) =>
        !isCustomer(request) || /fields=/.test(request.query) ? body : { ...body, revision: shown(version) },
      ),
    }),
  ),
  {
    id: "row-version-in-body",
    rule: "ETG-14",
    does: "shows the row version as a body field of full reads",
    plant: instead("shape", (body, { tag }, _shown, _caller, request) =>
      !isCustomer(request) || /fields=/.test(request.query)
        ? body
        : { ...body, RowVersion: tag.slice(1, -1) },
    ),
  },
  {
    id: "answers-203",
    rule: "ETG-01",
    does: "stands behind a proxy that transforms reads and says so with 203",
    plant: on(wholeRead).answers(as(203)),
  },
  {
    id: "answers-list-of-one",
    rule: "ETG-01",
    does: "answers a read with the rows of its query: a list of one",
    plant: on(wholeRead).answers(showing((body) => [body])),
  },
  ...ASKED.map(
    ([id, does, when]): Fault => ({
      id: `etag-varies-${id}`,
      rule: "ETG-05",
      does,
      plant: on(read(), when).answers(tagged(({ reply }) => getHeader(reply, "etag")?.replace(/^"/, '"v-'))),
    }),
  ),
  {
    id: "range-without-etag",
    rule: "ETG-05",
    does: "answers Range by its module for files, which knows no tag of a customer",
    plant: on(read(), sends("range")).answers(untagged),
  },
  {
    id: "head-moves-tag",
    rule: "ETG-04",
    does: "notes the time of HEAD, by which monitors look, in the versioned row",
    plant: on(read(), byHead).answers(spoiling((customer, turn) => ({ tag: newTag(customer, turn) }))),
  },
  {
    id: "not-modified-moves-tag",
    rule: "ETG-04",
    does: "counts its answers 304 in the versioned row",
    deployment: { conditionalReads: true },
    plant: on(read(304)).answers(spoiling((customer, turn) => ({ tag: newTag(customer, turn) }))),
  },
  {
    id: "etag-of-new-customer-is-hash",
    rule: "ETG-13",
    does: "carries the md5 of the email until the first update gives a version",
    plant: instead("mint", (sound, _version, before, { email }) =>
      before === undefined ? `"${digest(email, "md5")}"` : sound,
    ),
  },
  {
    id: "etag-holds-initial",
    rule: "ETG-19",
    does: "puts the initial of the name behind a version, to shard by it",
    plant: tagsLike((version, { name }) => `"${version}-${name.charAt(0)}"`),
  },
  {
    id: "projected-read-weakened",
    rule: "ETG-05",
    does: "weakens the tag of projections, as a filter that rewrites bodies does",
    plant: on(projectedRead).answers(weakened),
  },
  {
    id: "projected-read-moves-tag",
    rule: "ETG-04",
    does: "writes an access log of projections into the versioned row",
    plant: on(projectedRead).answers(spoiling((customer, turn) => ({ tag: newTag(customer, turn) }))),
  },
];
