import { note } from "./evidence.ts";
import { CouldNotRun } from "./outcome-signal.ts";
import type { Trial } from "./trial.ts";

/** 412 carries the tag of now, equal to the one that a read shows. */
export async function currentTagIn412(t: Trial, method: "PUT" | "PATCH"): Promise<void> {
  const { former, tag } = await t.twin(method, t.kit.main);
  const evidence = t.probe(`${method} with a stale tag`, `412 with ETag ${tag}`);
  const seen = await t.write(method, t.kit.main, { ifMatch: former, purpose: "probe" });
  note(evidence, seen);
  if (seen.status !== 412)
    throw new CouldNotRun(
      `a stale ${method} was answered ${seen.status}, not 412; see ${method === "PUT" ? "IFM-03" : "IFM-31"}`,
    );
  if (
    seen.tag !== undefined &&
    seen.tag !== tag &&
    (await t.state(t.kit.main, "read again")).tag === seen.tag
  )
    throw new CouldNotRun("the read before showed an older tag than the 412; see ENV-04");
  if (t.check("etag", seen.tag !== undefined, `the 412 of ${method} carries no ETag`))
    t.check(
      "etag-current",
      seen.tag === tag,
      `the 412 of ${method} carries ${seen.tag}; the current tag is ${tag}`,
    );
}
