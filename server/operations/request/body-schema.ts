import { Kind, type Static, type TObject } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import type { ValueError } from "@sinclair/typebox/errors";
import { FORMAT_FAULTS } from "../../domain/customer/field-registry.ts";
import { type MemberFault, ok, type Result, refuse } from "../../domain/problem.ts";
import { nearest } from "../../domain/text/nearest.ts";

/** Limits on what an answer repeats: the number of faults, and the length of a property's name. */
const FAULTS_MAX = 20;
const POINTER_CHARACTERS_MAX = 128;

/**
 * Checks parsed JSON against a schema. Nothing is coerced and nothing is
 * stripped: a body is valid as it is, or is refused with all of its faults.
 */
export class BodySchema<Schema extends TObject> {
  readonly #schema: Schema;
  /** Made for the first body: to compile the four schemas of the service takes a tenth of its start. */
  #compiled: TypeCheck<Schema> | undefined;

  constructor(schema: Schema) {
    this.#schema = schema;
  }

  get #check(): TypeCheck<Schema> {
    this.#compiled ??= TypeCompiler.Compile(this.#schema);
    return this.#compiled;
  }

  /**
   * @param further faults that the schema cannot know
   * @returns the body, typed; or `invalid-body` with a JSON Pointer and a sentence for each fault
   */
  readonly read = (body: unknown, further: readonly MemberFault[] = []): Result<Static<Schema>> =>
    further.length === 0 && this.#check.Check(body)
      ? ok(body)
      : refuseMembers([...this.#faults(body), ...further]);

  #faults(body: unknown): MemberFault[] {
    const members = Object.keys(this.#schema.properties);
    const faults = new Map<string, MemberFault>();
    for (const error of this.#check.Errors(body)) {
      if (faults.has(error.path)) continue;
      faults.set(error.path, { pointer: shortened(error.path), detail: explain(error, members) });
      if (faults.size === FAULTS_MAX) break;
    }
    return [...faults.values()];
  }
}

function shortened(pointer: string): string {
  if (pointer.length <= POINTER_CHARACTERS_MAX) return pointer;
  return `${pointer.slice(0, POINTER_CHARACTERS_MAX).toWellFormed()}…`;
}

function refuseMembers(errors: MemberFault[]): Result<never> {
  const [first] = errors;
  const where = first === undefined || first.pointer === "" ? "The body" : `\`${first.pointer.slice(1)}\``;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more: see \`errors\`)` : "";
  const sentence = `${where} ${first?.detail ?? "is not valid"}${more}.`;
  return refuse("invalid-body", sentence.replace(/\?\.$/, "?"), { extensions: { errors } });
}

function explain(error: ValueError, members: readonly string[]): string {
  const { schema, value, path } = error;
  if (value === undefined) return "is required";
  // TypeBox reports a property that the schema does not have as `Never`.
  if (schema[Kind] === "Never" || isUnknownMember(path, members)) return explainUnknown(path, members);
  if (path === "") return `must be a JSON object; it is ${typeName(value)}`;
  if (value === null) return "must not be null; leave it out instead";
  if (schema[Kind] !== "String") return schema["fault"] ?? "is not valid";
  if (typeof value !== "string") return `must be a string; it is ${typeName(value)}`;
  return FORMAT_FAULTS[schema["format"]]?.(value) ?? "is not valid";
}

function isUnknownMember(path: string, members: readonly string[]): boolean {
  return path !== "" && !members.includes(memberName(path));
}

function explainUnknown(path: string, members: readonly string[]): string {
  const near = nearest(memberName(path), members);
  return `is an unknown property; ${near === null ? `choose from ${members.join(", ")}` : `did you mean \`${near}\`?`}`;
}

function memberName(path: string): string {
  return path.slice(1).replaceAll("~1", "/").replaceAll("~0", "~");
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
