/** Reads the Prometheus text format and OpenMetrics as far as counters need it. */

type Sample = { readonly name: string; readonly labels: string; readonly value: number };
export type Exposition = {
  readonly samples: readonly Sample[];
  /** Declared type by family name. */
  readonly types: ReadonlyMap<string, string>;
  /** The first line that is neither a sample nor a comment; undefined: all parse. */
  readonly malformed: string | undefined;
};

export function parseExposition(text: string): Exposition {
  const samples: Sample[] = [];
  const types = new Map<string, string>();
  let malformed: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const type = /^#\s*TYPE\s+(\S+)\s+(\S+)/.exec(line);
    if (type?.[1] !== undefined && type[2] !== undefined) types.set(type[1], type[2]);
    if (line.startsWith("#") || line.trim() === "") continue;
    const sample = readSample(line.trim());
    if (sample !== undefined) samples.push(sample);
    else malformed ??= line;
  }
  return { samples, types, malformed };
}

function readSample(line: string): Sample | undefined {
  const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(line)?.[0];
  if (name === undefined) return undefined;
  let rest = line.slice(name.length);
  let labels = "";
  if (rest.startsWith("{")) {
    // A label value may hold a brace or an escaped quote.
    const end = /^\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}/.exec(rest)?.[0];
    if (end === undefined) return undefined;
    labels = end;
    rest = rest.slice(end.length);
  }
  const value = /^\s+(\S+)/.exec(rest)?.[1];
  if (value === undefined) return undefined;
  const number = /^[+-]?inf$/i.test(value) ? Number.POSITIVE_INFINITY : Number(value);
  return Number.isNaN(number) && !/^nan$/i.test(value) ? undefined : { name, labels, value: number };
}

/** The series of a counter `x_total`; OpenMetrics declares its family as `x`, and `x_created` is no part of it. */
export function seriesOf({ samples }: Exposition, counter: string): ReadonlyMap<string, number> {
  return new Map(samples.filter(({ name }) => name === counter).map(({ labels, value }) => [labels, value]));
}

export function typeOf({ types }: Exposition, counter: string): string | undefined {
  return types.get(counter) ?? types.get(counter.replace(/_total$/, ""));
}
