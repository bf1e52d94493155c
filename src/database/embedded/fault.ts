/** Why the embedded database can't be used: one line, for the operator. */
export class EmbeddedDatabaseError extends Error {
  override readonly name = "EmbeddedDatabaseError";
}
