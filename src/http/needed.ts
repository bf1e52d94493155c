/** What a route takes, in the words that a caller without it is told. The document shows the same. */

/** What each scheme's routes take. */
const CREDENTIALS = {
  ingestToken: "a live ingest token (tly_i_…): tally credential create issues one",
  apiToken: "a live API token (tly_a_…): tally token create issues one",
  internalToken:
    "the internal token: TALLY_REPORTING_INTERNAL_TOKEN, or else the data directory's file internal-token",
} as const;

/** The three schemes of bearer tokens, as the document names them. */
export type Scheme = keyof typeof CREDENTIALS;

/** The `detail` of a 401. */
export function credentialNeeded(scheme: Scheme): string {
  return `this route takes a bearer token, ${CREDENTIALS[scheme]}`;
}

/** The `detail` of a 403 whose reason is the token's role. */
export function roleNeeded(role: string): string {
  return `this route takes a token of role ${role}`;
}
