/** How customers are made: what to try, what a refusal means, or a command of the profile. */
import { CouldNotRun } from "../probe/outcome-signal.ts";
import type { Values } from "../probe/values.ts";
import type { Profile } from "../target/profile.ts";

/** Member names to try in a create body: those of the profile, or the usual casings. */
export function createNames({ name, email }: Profile["json"]): (readonly [string, string])[] {
  if (name !== undefined && email !== undefined) return [[name, email]];
  return [
    ["name", "email"],
    ["Name", "Email"],
    ["NAME", "EMAIL"],
  ];
}

export function refusalAdvice(status: number): string {
  if (status === 404 || status === 405 || status === 501)
    return ": there is no such route (is the base URL right?); give customers by --customer-id, or [customers] path in a profile";
  if (status === 400 || status === 415 || status === 422)
    return ": it wants another body; give [customers] body in a profile";
  if (status === 401 || status === 403) return ": the credentials may not create";
  return "";
}

/** A command of the profile: it finds `CUSTOMER_NAME` and `CUSTOMER_EMAIL` in its environment and prints the new id last. */
export async function runCommand(command: string, values: Values): Promise<string> {
  const child = Bun.spawn(["sh", "-c", command], {
    env: { ...process.env, CUSTOMER_NAME: values.name, CUSTOMER_EMAIL: values.email },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [text, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  const id = text.trim().split(/\s+/).at(-1);
  if (code !== 0 || id === undefined || id === "")
    throw new CouldNotRun(`customers.command ended with ${code} and printed no id`);
  return id;
}
