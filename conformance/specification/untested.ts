/**
 * Lines of the specification that no rule stands on, or not on the whole of it, and why. A key is the beginning of the
 * line, word for word.
 */
export const UNTESTED: Readonly<Record<string, string>> = {
  "1. The service exposes a customer resource": "every rule addresses customers so",
  "6. Further capabilities": "not shown",
  "| id | Id |": "as the registry names above",
  "| name | Name |": "as the registry names above",
  "| email | Email |": "as the registry names above",
  "| status | Status |": "as the registry names above",
  "| Status | enumeration": "its values are not shown, so the kit writes none but the one that is stored",
  "1. Carried in the `ETag`": "every rule on reads and writes uses both headers",
  "6. The token changes on every accepted write":
    "changes by other means than this API can't be brought about from outside",
  "JSON property-name casing": "the casing is not shown: the kit detects it",
  "Customer status values": "not shown",
  "| Path parameter `id`": "how a malformed id is answered is not shown",
  "| Query parameter `fields`": "as rule 1 below",
  "| Request body | none": "it binds the client",
  "3. When `fields` is absent": "the content of the default set is not shown",
  "7. The projection determines": "can't be seen from outside: the answer is the same",
  "4. Apply the change": "every accepted write shows it",
  "- PATCH and DELETE payload shapes": "not shown: the kit detects them, or the profile says them",
  "List, create and any other": "not shown: the kit uses POST only to create customers",
  "1. Authentication mechanism": "not shown: any header works",
  "4. How roles and tenants": "not shown: the callers are given",
  "Events emitted": "not shown",
  "| 400 | `fields`": "as 4.1",
  "| 428 Precondition Required": "as 4.2",
  "2. Strict mode is the rule":
    "during a rollout the rules on a missing header are known violations with an end date",
  "4. Telemetry": "the share of write attempts and its breakdown have no names that the kit could look for",
  "5. Body fields of the problem": "not shown: PRB looks at what RFC 7807 says",
  "6. Status code when a caller": "not shown: any 4xx is accepted",
  "1. A maximum number of fields": "its value is not shown",
  "3. Rate limits": "not shown: the kit obeys 429",
  "1. Resource versioning": "as 2.4",
  "2. Rolling out enforcement": "advice to operators; see 7, rule 2",
  "3. Versioning of the API": "not shown: the base URL may have any path prefix",
};
