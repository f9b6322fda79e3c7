/** A function and those it called. */
type Frame = { readonly name: string; samples: number; readonly callees: Map<string, Frame> };

const WIDTH = 1600;
const ROW = 17;
const MARGIN = 30;
/** Narrower ones can't be seen. */
const WIDTH_MIN = 0.4;
const LETTER = 6.6;

/**
 * @param stacks a sample each, callers first
 * @returns an SVG: each function as wide as its share of all samples, upon its caller, by name
 */
export function flameGraph(title: string, stacks: readonly (readonly string[])[]): string {
  const root: Frame = { name: "all", samples: 0, callees: new Map() };
  let depth = 0;
  for (const stack of stacks) {
    let frame = root;
    frame.samples += 1;
    depth = Math.max(depth, stack.length);
    for (const name of stack) {
      const callee: Frame = frame.callees.get(name) ?? { name, samples: 0, callees: new Map() };
      frame.callees.set(name, callee);
      callee.samples += 1;
      frame = callee;
    }
  }
  const height = (depth + 1) * ROW + 2 * MARGIN;
  const boxes: string[] = [];
  const draw = (frame: Frame, x: number, row: number): void => {
    const width = (frame.samples / root.samples) * WIDTH;
    if (width < WIDTH_MIN) return;
    boxes.push(box(frame, x, height - MARGIN - (row + 1) * ROW, width, root.samples));
    let left = x;
    for (const [, callee] of [...frame.callees].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      draw(callee, left, row + 1);
      left += (callee.samples / root.samples) * WIDTH;
    }
  };
  draw(root, 0, 0);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="11">
<rect width="100%" height="100%" fill="#fff"/>
<text x="${WIDTH / 2}" y="20" text-anchor="middle" font-size="15">${escaped(title)}; ${root.samples} samples</text>
${boxes.join("\n")}
</svg>
`;
}

function box({ name, samples }: Frame, x: number, y: number, width: number, all: number): string {
  const letters = Math.floor((width - 4) / LETTER);
  const text = letters < 3 ? "" : name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
  const label = text === "" ? "" : `<text x="${(x + 2).toFixed(1)}" y="${y + 12}">${escaped(text)}</text>`;
  const hint = `${name}: ${((samples / all) * 100).toFixed(1)} %`;
  return `<g><title>${escaped(hint)}</title><rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 1}" fill="${colour(name)}"/>${label}</g>`;
}

/** The kernel's functions are blue, Bun's own code is grey, all else is of a warm colour that hangs on its name. */
function colour(name: string): string {
  if (name.startsWith("kernel: ")) return "#a9c8e8";
  if (name === "bun" || name.startsWith("lib")) return "#d5d5d5";
  return `hsl(${20 + (Bun.hash.crc32(name) % 35)} 85% 72%)`;
}

function escaped(text: string): string {
  return Bun.escapeHTML(text);
}
