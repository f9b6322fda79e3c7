/** HEAD is GET without its body (RFC 9110 9.3.2). The specification does not know it. */

import { accepted, isGone } from "../../http/status.ts";
import type { Attempt } from "../attempt.ts";

/**
 * Whether HEAD is answered by what answers GET: it finds the main customer and no other one. A gateway may send it
 * elsewhere, to a page that is always there. A run that only reads promises to send nothing but GET.
 */
export async function headIsGet(t: Attempt): Promise<boolean> {
  const { options, main, ground } = t.kit;
  if (options.mode === "read-only") return false;
  const ask = { sentAs: "HEAD", purpose: "control request: HEAD" } as const;
  const there = await t.get(main, ask);
  return accepted(there.status) && isGone((await t.get(ground.missing(), ask)).status);
}
