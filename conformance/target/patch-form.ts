/** Forms of a PATCH body: 4.3 shows none, so each that is registered for JSON is tried. */

import type { Names } from "./names.ts";
import { fillTemplate, type Values } from "./values.ts";

export type PatchForm = { readonly mediaType: string; body(values: Partial<Values>): string };

export const PATCH_TYPES = [
  "application/merge-patch+json",
  "application/json",
  "application/json-patch+json",
] as const;

/** @param template of the profile, in place of what the media type says */
export function patchForm(mediaType: string, template: string | undefined, names: Names): PatchForm {
  const merge = (values: Partial<Values>) =>
    JSON.stringify(
      Object.fromEntries(
        Object.entries(values).map(([field, value]) => [names[field as keyof Values], value]),
      ),
    );
  const operations = (values: Partial<Values>) =>
    JSON.stringify(
      Object.entries(values).map(([field, value]) => ({
        op: "replace",
        path: `/${names[field as keyof Values]}`,
        value,
      })),
    );
  return {
    mediaType,
    body:
      template !== undefined
        ? (values) => fillTemplate(template, values as Record<string, string>)
        : /json-patch/.test(mediaType)
          ? operations
          : merge,
  };
}
