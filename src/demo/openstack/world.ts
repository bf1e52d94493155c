/** One fake cloud: what it holds, who may ask, and what its clock says. */
import type { Instant } from "../../event/instant.ts";
import type {
  Flavor,
  FloatingIp,
  Image,
  LoadBalancer,
  Project,
  Server,
  User,
  Volume,
  VolumeType,
} from "./model.ts";
import { byCreation, byCreationBackwards, compareText, Ordered } from "./ordered.ts";

/** Everything that the services answer from, each collection in its service's default order. */
export class World {
  /** The cloud's clock. Whoever owns the world moves it. */
  now: Instant;
  /** The most items of a page, as an operator configures it; null: 1000, and no limit in neutron. */
  pageLimit: number | null = null;
  readonly projects = new Map<string, Project>();
  /** By name. */
  readonly users = new Map<string, User>();
  readonly flavors = new Ordered<Flavor>((a, b) => compareText(a.id, b.id));
  readonly volumeTypes = new Ordered<VolumeType>(byCreationBackwards);
  readonly servers = new Ordered<Server>(byCreationBackwards);
  readonly volumes = new Ordered<Volume>(byCreationBackwards);
  readonly floatingIps = new Ordered<FloatingIp>((a, b) => compareText(a.id, b.id));
  readonly images = new Ordered<Image>(byCreationBackwards);
  readonly loadBalancers = new Ordered<LoadBalancer>(byCreation);

  constructor(now: Instant) {
    this.now = now;
  }
}

/** A word of 32 hex digits that is always the same for a text, as Keystone's ids look. */
export function hexId(text: string): string {
  return new Bun.CryptoHasher("md5").update(text).digest("hex");
}

/** The same as a UUID, as the other services' ids look. */
export function uuid(text: string): string {
  return hexId(text).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The domain that projects and users without another one belong to. */
export const DEFAULT_DOMAIN = { id: "default", name: "Default" } as const;

/**
 * Adds the accounts that a fake cloud comes with. Each password is `<name>-password`.
 *
 * - `collector`: admin, with an application credential (`collector-credential`, secret `collector-secret`)
 * - `reader`: sees its own project only, is refused what is for administrators
 * - `halfway`: nova shows it everything, the other services its own project only
 */
export function addAccounts(world: World, ownProject: Project): void {
  const home = { id: hexId("project collector"), name: "collector", domainId: DEFAULT_DOMAIN.id };
  world.projects.set(home.id, home);
  world.projects.set(ownProject.id, ownProject);
  const user = (name: string, project: Project, roles: readonly string[]) => ({
    id: hexId(`user ${name}`),
    name,
    domainId: DEFAULT_DOMAIN.id,
    password: `${name}-password`,
    roles: new Map([[project.id, roles]]),
    applicationCredential: null,
  });
  const credential = { id: "collector-credential", secret: "collector-secret", projectId: home.id };
  const collector = user("collector", home, ["member", "admin", "reader"]);
  world.users.set("collector", { ...collector, applicationCredential: credential });
  world.users.set("reader", user("reader", ownProject, ["reader"]));
  const halfway = ["member", "compute-admin", "load-balancer_member"];
  world.users.set("halfway", user("halfway", ownProject, halfway));
}
