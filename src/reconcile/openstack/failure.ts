/** What goes wrong with one service of a cloud. */

/** A service can't be read, or not to its end. The message is for people, and holds no secret. */
export class ServiceFailure extends Error {
  override readonly name = "ServiceFailure";
}
