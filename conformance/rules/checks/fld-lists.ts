/** Field lists whose status is open: repeats, blanks, empty and very long ones. */

import type { Seen } from "../../http/wire.ts";
import type { Attempt } from "../../probe/attempt.ts";
import type { Check } from "../../probe/check.ts";
import { excerpt, note } from "../../probe/evidence.ts";
import { ask, isOneOf } from "../../probe/field-query.ts";
import { accepted } from "../../probe/trial.ts";
import { FIELDS } from "../../target/profile-file.ts";

const KNOWN = FIELDS.join(",");

/**
 * An unknown name in a long list, and asked for by the limited caller. The status may have other reasons there (the
 * maximum of 8.1, the rights of the caller), but 200 has none.
 */
export async function unknownIsRefused(t: Attempt): Promise<void> {
  const look = (what: string, seen: Seen) =>
    t.check("refused", !accepted(seen.status), `${what} was answered ${seen.status}, not refused`);
  for (const names of [
    `${KNOWN},${KNOWN},${KNOWN},kitunknown`,
    `${KNOWN},kitunknown,${KNOWN},${KNOWN}`,
    `${`${KNOWN},`.repeat(16)}kitunknown`,
  ]) {
    const seen = await ask(t, `?fields=${names}`, "some 4xx");
    look(`a list of ${names.split(",").length} names, one of them unknown,`, seen);
  }
  if (t.kit.profile.limited === undefined) return;
  for (const names of ["kitunknown", ...FIELDS.map((field) => `${field},kitunknown`)]) {
    const query = `?fields=${names}`;
    const evidence = t.probe(`GET ${query} by the limited caller`, "some 4xx");
    const seen = await t.get(t.kit.main, { query, caller: "limited", purpose: "probe" });
    note(evidence, seen, { came: excerpt(seen) });
    look(`GET ${query} by the limited caller`, seen);
  }
}

export const fldLists = {
  "FLD-13": async (t) => {
    for (const [query, allowed] of [
      ["?fields=name,name", ["name"]],
      ["?fields=name,NAME,id", ["name", "id"]],
      ["?fields=id&fields=name", ["id", "name"]],
      ["?fields=name,,id", ["name", "id"]],
      ["?fields=%20name%20,%20id", ["name", "id"]],
    ] as const) {
      const seen = await ask(t, query, "200 with no member beyond those named, or a 4xx");
      t.check("no-5xx", seen.status < 500, `GET ${query} was answered ${seen.status}`, "SHOULD");
      if (seen.status !== 200) continue;
      const extra = Object.keys(seen.object ?? {}).filter((name) => !isOneOf(name, allowed));
      t.check(
        "no-other",
        extra.length === 0,
        `GET ${query}: ${extra.join(", ")} came as well, beyond those named`,
        "MUST",
      );
    }
    for (const query of ["?fields=", "?fields=,", "?fields=%20"]) {
      const seen = await ask(t, query, "open, but no 5xx");
      t.check("no-5xx", seen.status < 500, `GET ${query} was answered ${seen.status}`, "SHOULD");
    }
  },
  "FLD-14": async (t) => {
    const long = (names: readonly string[], count: number) =>
      `?fields=${Array.from({ length: count }, (_, index) => names[index % names.length]).join(",")}`;
    for (const [query, allowed] of [
      [long(["name"], 1000), ["name"]],
      [long(["id", "name"], 400), ["id", "name"]],
    ] as const) {
      const evidence = t.probe(
        `GET with ${query.split(",").length} names in fields`,
        "200 with those fields, or a 4xx",
      );
      const seen = await t.get(t.kit.main, { query, purpose: "probe" });
      note(evidence, seen, { came: String(seen.status) });
      t.check(
        "no-5xx",
        seen.status < 500,
        `${query.split(",").length} names in fields were answered ${seen.status}`,
        "SHOULD",
      );
      if (seen.status !== 200) continue;
      const extra = Object.keys(seen.object ?? {}).filter((name) => !isOneOf(name, allowed));
      t.check(
        "no-other",
        extra.length === 0,
        `a long list of names: ${extra.join(", ")} came as well, beyond those named`,
        "MUST",
      );
    }
  },
} satisfies Record<`FLD-1${"3" | "4"}`, Check>;
