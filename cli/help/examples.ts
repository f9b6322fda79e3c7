/** The examples under each command's help. A test runs every line. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  get: ['customers get "$ID"', 'name=$(customers get "$ID" --output value --fields name)'],
  list: [
    "customers list --status active --limit 10",
    "customers list --all --output ndjson --fields id,email",
  ],
  create: [
    'customers create --name "Ada Lovelace" --email ada@example.com',
    "customers create --name Ada --email ada@example.com --idempotency-key order-4711",
  ],
  update: [
    'customers update "$ID" --email ada@new.example',
    'customers update "$ID" --status closed --expect status=active',
    'customers update "$ID" --set name=Ada --dry-run',
  ],
  edit: ['customers edit "$ID"'],
  delete: ['customers delete "$ID" --expect status=closed --yes'],
  undo: ["customers undo --list", 'customers undo "$ID" --dry-run', 'customers undo "$ID" --yes'],
  import: ["customers import customers.csv --dry-run", "customers import customers.csv"],
  export: ["customers export all.csv", "customers export --format ndjson --status active > active.ndjson"],
  profile: [
    "customers profile set staging --url https://staging.example.com",
    "customers profile use staging",
    "customers profile show",
  ],
  login: ["customers login < token.txt"],
  logout: ["customers logout"],
  whoami: ["customers whoami"],
  config: ["customers config", "customers config --profile staging"],
  watch: ['customers watch "$ID" --until status=active --timeout 5m'],
  history: ['customers history "$ID"', 'customers history "$ID" --all --output ndjson'],
  api: ['customers api GET "/customers/$ID?fields=name" --include'],
  doctor: ['customers doctor "$ID"'],
  completion: ["customers completion bash > ~/customers.bash"],
  help: ["customers help conflicts", "customers help update"],
};

/** As it stands under the help of a command; undefined for one without examples. */
export function examplesOf(command: string): string | undefined {
  const lines = EXAMPLES[command];
  return lines === undefined ? undefined : `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}`;
}
