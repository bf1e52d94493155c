/** What a login gives: a token, and how far it sees. */
import type { Instant } from "../../event/instant.ts";
import type { Project, User } from "./model.ts";

/** A token as the services see it. */
export interface Token {
  readonly value: string;
  readonly user: User;
  readonly project: Project;
  readonly roles: readonly string[];
  readonly expiresAt: Instant;
}

/** Whether the token sees what is not its project's, by its roles: an admin of everything, or of this service. */
export function seesAll(token: Token, service: "compute" | "volume" | "network" | "image" | "load-balancer") {
  return token.roles.includes("admin") || token.roles.includes(`${service}-admin`);
}
