/** The options that every command takes, as commander parsed them. */

export const OUTPUT_FORMATS = ["table", "json", "ndjson", "csv", "value"] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

export type Flags = {
  url?: string;
  profile?: string;
  tokenFile?: string;
  tokenStdin?: boolean;
  header?: readonly string[];
  headerEnv?: readonly string[];
  proxy?: string;
  cacert?: string;
  cert?: string;
  key?: string;
  insecure?: boolean;
  /** Milliseconds. */
  timeout?: number;
  verbose?: boolean;
  quiet?: boolean;
  output?: OutputFormat;
};
