/**
 * The form of an email address that searches compare: Unicode's default lower
 * case, without regard to language. Accents and compatibility forms stay apart.
 */
export function foldEmail(email: string): string {
  return email.toLowerCase();
}
