/** What happens to floating IPs, images and load balancers. */
import type { FloatingIp, Image, LoadBalancer } from "../../src/demo/openstack/model.ts";
import type { Instant } from "../../src/event/instant.ts";
import { floatingIpFacts, imageFacts, loadBalancerFacts } from "./facts.ts";
import { PROJECTS } from "./furnishing.ts";
import type { Happenings } from "./happenings.ts";
import type { Random } from "./random.ts";

export function newFloatingIp(random: Random, since: Instant): FloatingIp {
  const address = `203.0.${random.whole(0, 255)}.${random.whole(1, 254)}`;
  const id = random.uuid();
  return {
    id,
    projectId: random.pick(PROJECTS).id,
    address,
    portId: null,
    createdAt: since,
    updatedAt: since,
  };
}

export function createFloatingIp(happenings: Happenings): void {
  const { world, random } = happenings;
  const ip = newFloatingIp(random, world.now);
  world.floatingIps.set(ip);
  happenings.rest({ type: "floating_ip", id: ip.id });
  const facts = floatingIpFacts(ip);
  const resource = { resourceType: "floating_ip", resourceId: ip.id } as const;
  happenings.turn({
    ...resource,
    at: world.now,
    eventType: "floatingip.create.end",
    facts,
    size: facts.size,
  });
}

/** It is put on a port, or taken off one: nothing that is billed changes. */
export function changeFloatingIp({ world, random }: Happenings, id: string): void {
  const ip = world.floatingIps.get(id);
  if (ip === undefined) return;
  world.floatingIps.set({ ...ip, portId: ip.portId === null ? random.uuid() : null, updatedAt: world.now });
}

export function deleteFloatingIp(happenings: Happenings, id: string): void {
  const { world } = happenings;
  world.floatingIps.delete(id);
  const resource = { resourceType: "floating_ip", resourceId: id } as const;
  happenings.turn({ ...resource, at: world.now, eventType: "floatingip.delete.end", facts: null });
}

export function newImage(random: Random, since: Instant): Image {
  return {
    id: random.uuid(),
    name: random.pick(["debian-13", "rocky-9", "golden ☃"]),
    owner: random.pick(PROJECTS).id,
    status: "active",
    bytes: random.whole(1, 4_096) * 2 ** 20 + random.whole(0, 1_023),
    visibility: random.pick(["public", "private", "shared", "community"]),
    hidden: random.chance(0.1),
    members: [],
    createdAt: since,
    updatedAt: since,
  };
}

export function createImage(happenings: Happenings): void {
  const { world, random } = happenings;
  const since = world.now;
  const image = newImage(random, since);
  world.images.set({ ...image, status: "queued", bytes: null });
  happenings.busy({ type: "image", id: image.id }, [5, 60], () => {
    const made = { ...image, updatedAt: world.now };
    world.images.set(made);
    const facts = imageFacts(made);
    const resource = { resourceType: "image", resourceId: image.id } as const;
    happenings.turn({ ...resource, at: since, eventType: "image.create", facts, size: facts.size });
  });
}

/** It is deactivated or reactivated, which is not billed, or given to another project, which is. */
export function changeImage(happenings: Happenings, id: string): void {
  const { world, random } = happenings;
  const image = world.images.get(id);
  if (image === undefined) return;
  if (random.chance(0.5)) {
    const status = image.status === "active" ? "deactivated" : "active";
    world.images.set({ ...image, status, updatedAt: world.now });
    return;
  }
  const changed = { ...image, owner: random.pick(PROJECTS).id, updatedAt: world.now };
  world.images.set(changed);
  const resource = { resourceType: "image", resourceId: id } as const;
  const facts = imageFacts(changed);
  happenings.turn({ ...resource, at: world.now, eventType: "image.update", facts, size: facts.size });
  happenings.rest({ type: "image", id });
}

export function deleteImage(happenings: Happenings, id: string): void {
  const { world } = happenings;
  world.images.delete(id);
  const resource = { resourceType: "image", resourceId: id } as const;
  happenings.turn({ ...resource, at: world.now, eventType: "image.delete", facts: null });
}

export function newLoadBalancer(random: Random, since: Instant): LoadBalancer {
  return {
    id: random.uuid(),
    name: random.pick(["lb-web", 'lb "研究"']),
    projectId: random.pick(PROJECTS).id,
    provisioningStatus: "ACTIVE",
    listeners: random.whole(0, 3),
    pools: random.whole(0, 2),
    createdAt: since,
    updatedAt: since,
  };
}

export function createLoadBalancer(happenings: Happenings): void {
  const { world, random } = happenings;
  const since = world.now;
  const balancer = newLoadBalancer(random, since);
  world.loadBalancers.set({ ...balancer, provisioningStatus: "PENDING_CREATE" });
  happenings.busy({ type: "loadbalancer", id: balancer.id }, [5, 90], () => {
    const made = { ...balancer, updatedAt: world.now };
    world.loadBalancers.set(made);
    const facts = loadBalancerFacts(made);
    const resource = { resourceType: "loadbalancer", resourceId: balancer.id } as const;
    const eventType = "octavia.loadbalancer.create.end";
    happenings.turn({ ...resource, at: since, eventType, facts, size: facts.size });
  });
}

export function changeLoadBalancer(happenings: Happenings, id: string): void {
  const { world, random } = happenings;
  const balancer = world.loadBalancers.get(id);
  if (balancer === undefined) return;
  world.loadBalancers.set({ ...balancer, provisioningStatus: "PENDING_UPDATE", updatedAt: world.now });
  happenings.busy({ type: "loadbalancer", id }, [2, 30], () => {
    const changed = {
      ...balancer,
      listeners: random.whole(0, 3),
      pools: random.whole(0, 2),
      updatedAt: world.now,
    };
    world.loadBalancers.set(changed);
    const facts = loadBalancerFacts(changed);
    const resource = { resourceType: "loadbalancer", resourceId: id } as const;
    const eventType = "octavia.loadbalancer.update.end";
    happenings.turn({ ...resource, at: world.now, eventType, facts, size: facts.size });
  });
}

export function deleteLoadBalancer(happenings: Happenings, id: string): void {
  const { world } = happenings;
  const balancer = world.loadBalancers.get(id);
  if (balancer === undefined) return;
  world.loadBalancers.set({ ...balancer, provisioningStatus: "PENDING_DELETE", updatedAt: world.now });
  happenings.busy({ type: "loadbalancer", id }, [2, 30], () => {
    world.loadBalancers.delete(id);
    const resource = { resourceType: "loadbalancer", resourceId: id } as const;
    happenings.turn({
      ...resource,
      at: world.now,
      eventType: "octavia.loadbalancer.delete.end",
      facts: null,
    });
  });
}
