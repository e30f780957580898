import { actingKinds } from './acting-kinds.ts';
import { AGENT_POOL_CATEGORY, agentPoolDecider } from './agents/agent-pool.ts';
import { AUDIT_EXPORT_CATEGORY, auditExportDecider } from './audit/export.ts';
import { AUDIT_GRANT_CATEGORY, auditGrantDecider } from './audit/grant.ts';
import { AUDIT_GRANT_NOTICE_CATEGORY, auditGrantNoticeDecider } from './audit/grant-notice.ts';
import { RETENTION_CATEGORY, retentionDecider } from './audit/retention.ts';
import { bareMetalInstanceCatalogItem } from './bare-metal/bare-metal-instance-catalog-item.resource.ts';
import { bareMetalInstanceTemplate } from './bare-metal/bare-metal-instance-template.resource.ts';
import { bareMetalInstanceType } from './bare-metal/bare-metal-instance-type.resource.ts';
import { clusterCatalogItem } from './catalog/cluster-catalog-item.resource.ts';
import { clusterTemplate } from './catalog/cluster-template.resource.ts';
import { clusterVersion } from './catalog/cluster-version.resource.ts';
import type { DocumentKind } from './catalog/document-kind.ts';
import { hostType } from './catalog/host-type.resource.ts';
import { cluster } from './clusters/cluster.resource.ts';
import { computeInstanceCatalogItem } from './compute/compute-instance-catalog-item.resource.ts';
import { computeInstanceTemplate } from './compute/compute-instance-template.resource.ts';
import { instanceType } from './compute/instance-type.resource.ts';
import type { Decider, DomainEvent } from './decider.ts';
import { HUB_CAPACITY_CATEGORY, hubCapacityDecider } from './hubs/capacity.ts';
import { hub } from './hubs/hub.resource.ts';
import { LANE_PAUSES_CATEGORY, lanePausesDecider } from './hubs/lane-pauses.ts';
import { diskImage } from './images/disk-image.resource.ts';
import { NAME_CATEGORY, nameDecider } from './naming/name.ts';
import { addressSpace } from './networks/address-space.ts';
import { networkClass } from './networks/network-class.resource.ts';
import { POOL_SPACE_CATEGORY, poolSpaceDecider } from './pools/pool-space.ts';
import { PREFIX_POOL_CATEGORY, prefixPoolDecider } from './pools/prefix-pool.ts';
import { VLAN_POOL_CATEGORY, vlanPoolDecider } from './pools/vlan-pool.ts';
import type { Lender, ResourceKind } from './resource.ts';
import { secret } from './secrets/secret.resource.ts';
import { storageBackend } from './storage/storage-backend.resource.ts';
import { storageTier } from './storage/storage-tier.resource.ts';
import { identityProvider } from './tenancy/identity-provider.resource.ts';
import { projectMembership } from './tenancy/project-membership.resource.ts';
import { byKey } from './json-tools.ts';
import { inProject } from './tenancy/in-project.ts';
import { project } from './tenancy/project.resource.ts';
import { roleBinding } from './tenancy/role-binding.resource.ts';
import { role } from './tenancy/role.resource.ts';
import { TENANT_SPACE_CATEGORY, tenantSpaceDecider } from './tenancy/tenant-space.ts';
import { tenant } from './tenancy/tenant.resource.ts';
import { user } from './tenancy/user.resource.ts';

/** A kind whose type parameters are of no interest to whoever walks over all of them. */
export type AnyKind = ResourceKind<unknown, { readonly type: string }, DomainEvent>;
/** An aggregate as the command runner takes it (src/app/commands/command.ts), without importing it. */
export type AnyAggregate = {
  readonly category: string;
  readonly decider: Decider<unknown, { readonly type: string }, DomainEvent>;
  readonly stateVersion: number;
};

// Deciders are contravariant in commands and events, so the lists forget their types in one place.
const forget = (kind: unknown): AnyKind => inProject(kind as AnyKind);
const forgetAggregate = (aggregate: object): AnyAggregate => aggregate as AnyAggregate;

export {
  cluster,
  clusterTemplate,
  clusterVersion,
  hostType,
  hub,
  identityProvider,
  project,
  projectMembership,
  role,
  roleBinding,
  secret,
  tenant,
  user,
};

/** Every OSAC kind of this service, by name: those that act (`acting-kinds.ts`), and the others. */
export const kinds: readonly AnyKind[] = [
  ...actingKinds,
  ...[
    bareMetalInstanceCatalogItem,
    bareMetalInstanceTemplate,
    bareMetalInstanceType,
    clusterCatalogItem,
    clusterTemplate,
    clusterVersion,
    computeInstanceCatalogItem,
    computeInstanceTemplate,
    diskImage,
    hostType,
    hub,
    instanceType,
    identityProvider,
    networkClass,
    project,
    projectMembership,
    role,
    roleBinding,
    secret,
    storageBackend,
    storageTier,
    tenant,
    user,
  ].map(forget),
].sort((left, right) => byKey([left.kind, left], [right.kind, right]));

/** Kinds without work to carry out: what their objects are is what their documents say. */
export const documentKinds: readonly DocumentKind[] = kinds.filter(
  (kind): kind is AnyKind & DocumentKind => 'hidden' in kind,
);

/** What begins and ends the objects of every kind. */
export const lifecycle: { readonly starts: readonly string[]; readonly ends: readonly string[] } = {
  starts: kinds.map(({ events }) => events.created),
  ends: kinds.map(({ events }) => events.retired),
};

/** By stream category, which is also the kind's name. */
export const kindOf = (category: string): AnyKind | undefined => kinds.find(({ kind }) => kind === category);

/** What lends and is no object of a kind. */
const lone: readonly Lender<unknown, { readonly type: string }, DomainEvent>[] = [addressSpace].map(
  (lender) => lender as unknown as AnyKind,
);
export const lenders: typeof lone = [...lone, ...kinds.filter(({ lends }) => lends !== undefined)];
export const lenderOf = (category: string): (typeof lone)[number] | undefined =>
  lenders.find(({ kind }) => kind === category);

/** The aggregate behind a kind, as the command runner takes it. */
export const aggregateOf = <State, Command extends { readonly type: string }, Event extends DomainEvent>(
  kind: Pick<ResourceKind<State, Command, Event>, 'kind' | 'decider' | 'stateVersion'>,
): {
  readonly category: string;
  readonly decider: Decider<State, Command, Event>;
  readonly stateVersion: number;
} => ({ category: kind.kind, decider: kind.decider, stateVersion: kind.stateVersion });

export const clusterAggregate = aggregateOf(cluster);
export const clusterTemplateAggregate = aggregateOf(clusterTemplate);
const owning = <Known>(category: string, decider: Known, stateVersion: number) => ({
  category,
  decider,
  stateVersion,
});
export const nameAggregate = owning(NAME_CATEGORY, nameDecider, 2);
export const hubCapacityAggregate = owning(HUB_CAPACITY_CATEGORY, hubCapacityDecider, 3);
export const vlanPoolAggregate = owning(VLAN_POOL_CATEGORY, vlanPoolDecider, 1);
export const prefixPoolAggregate = owning(PREFIX_POOL_CATEGORY, prefixPoolDecider, 1);
export const poolSpaceAggregate = owning(POOL_SPACE_CATEGORY, poolSpaceDecider, 1);
export const agentPoolAggregate = owning(AGENT_POOL_CATEGORY, agentPoolDecider, 1);
export const lanePausesAggregate = owning(LANE_PAUSES_CATEGORY, lanePausesDecider, 1);
export const tenantSpaceAggregate = owning(TENANT_SPACE_CATEGORY, tenantSpaceDecider, 1);
export const retentionAggregate = owning(RETENTION_CATEGORY, retentionDecider, 3);
export const auditGrantAggregate = owning(AUDIT_GRANT_CATEGORY, auditGrantDecider, 1);
export const auditGrantNoticeAggregate = owning(AUDIT_GRANT_NOTICE_CATEGORY, auditGrantNoticeDecider, 1);
export const auditExportAggregate = owning(AUDIT_EXPORT_CATEGORY, auditExportDecider, 1);

/** Every aggregate, by its stream category: what workflows name in their commands. */
export const aggregates: readonly AnyAggregate[] = [
  ...kinds.map(aggregateOf),
  ...lone.map(aggregateOf),
  nameAggregate,
  hubCapacityAggregate,
  vlanPoolAggregate,
  prefixPoolAggregate,
  poolSpaceAggregate,
  agentPoolAggregate,
  lanePausesAggregate,
  tenantSpaceAggregate,
  retentionAggregate,
  auditGrantAggregate,
  auditGrantNoticeAggregate,
  auditExportAggregate,
].map(forgetAggregate);
