/** The time line of a race, drawn: one lane a contender, one bar a request, the accepted ones in colour. */
import type { Moment } from "../../schema.ts";
import { escapeMarkup } from "../../visible.ts";

const WIDTH = 900;
const LEFT = 92;
const LANE = 24;
const HEAD = 24;
/** Rounds drawn of one rule; the rest is in report.json. */
const ROUNDS_MAX = 2;

const shorten = (tag: string | null): string =>
  tag === null ? "none" : tag.length > 22 ? `${tag.slice(0, 20)}…` : tag;

function label(moment: Moment): string {
  const answer = moment.status === null ? "no answer" : `${moment.status}`;
  return moment.to === null ? answer : `${answer} → ${shorten(moment.to)}`;
}

/** Accepted twice from one tag is the fault that a reader looks for, so those bars are red. */
function tone(moment: Moment, moments: readonly Moment[]): string {
  if (moment.status === null || moment.status >= 500) return "open";
  if (!moment.won) return "lost";
  const rivals = moments.filter((each) => each.won && each.from !== null && each.from === moment.from);
  return rivals.length > 1 ? "odd" : "won";
}

function round(number: number, moments: readonly Moment[]): string {
  const lanes = [...new Set(moments.map((moment) => moment.lane))];
  const start = Math.min(...moments.map((moment) => moment.sentMs));
  const end = Math.max(...moments.map((moment) => moment.answeredMs ?? moment.sentMs), start + 1);
  const x = (ms: number) => LEFT + ((ms - start) / (end - start)) * (WIDTH - LEFT - 190);
  const height = HEAD + lanes.length * LANE + 8;
  const grid = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = start + part * (end - start);
    return `<line class="grid" x1="${x(at).toFixed(1)}" x2="${x(at).toFixed(1)}" y1="18" y2="${height - 4}"/><text class="soft" x="${(x(at) + 3).toFixed(1)}" y="12">${(at - start).toFixed(1)} ms</text>`;
  });
  const bars = moments.map((moment) => {
    const top = HEAD + lanes.indexOf(moment.lane) * LANE;
    const from = x(moment.sentMs);
    const width = Math.max(3, x(moment.answeredMs ?? end) - from);
    const said = `${moment.lane}: ${moment.what}; If-Match ${moment.from ?? "none"}; ${label(moment)}`;
    return `<g><title>${escapeMarkup(said)}</title><rect class="${tone(moment, moments)}" x="${from.toFixed(1)}" y="${top}" width="${width.toFixed(1)}" height="15" rx="4"/><text x="${(from + width + 6).toFixed(1)}" y="${top + 12}">${escapeMarkup(label(moment))}</text></g>`;
  });
  const names = lanes.map(
    (lane, n) =>
      `<text class="soft" x="0" y="${HEAD + n * LANE + 12}">${escapeMarkup(lane.slice(0, 13))}</text>`,
  );
  return `<h3>Round ${number}</h3><div class="scroll"><svg class="race" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Round ${number}: ${lanes.length} contenders">${grid.join("")}${names.join("")}${bars.join("")}</svg></div>`;
}

/** @returns nothing for a rule without a time line. */
export function raceHtml(moments: readonly Moment[]): string {
  if (moments.length === 0) return "";
  const rounds = [...new Set(moments.map((moment) => moment.round))];
  const drawn = rounds.slice(0, ROUNDS_MAX).map((number) =>
    round(
      number,
      moments.filter((moment) => moment.round === number),
    ),
  );
  const rest =
    rounds.length > ROUNDS_MAX
      ? `<p class="legend">${rounds.length - ROUNDS_MAX} more rounds in report.json.</p>`
      : "";
  const legend = [
    ["t-good", "accepted"],
    ["t-mute", "refused or read"],
    ["t-bad", "accepted although another was accepted from the same tag"],
    ["t-warn", "no definite outcome"],
  ].map(([dot, text]) => `<span class="dot ${dot}"></span>${text}`);
  return `${drawn.join("")}${rest}<p class="legend">${legend.join(" &nbsp; ")}. A bar lasts from the moment the request was complete to that of its answer.</p>`;
}
