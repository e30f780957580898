import type { ActingKind } from './acting-kind.ts';
import type { HubObject } from './hubs/hub-object.ts';
import { actingBareMetalInstance } from './bare-metal/bare-metal-instance.workflow.ts';
import { actingCluster } from './clusters/acting.ts';
import { actingExternalIpAttachment } from './networks/external-ip-attachment.workflow.ts';
import { actingComputeInstance } from './compute/compute-instance.workflow.ts';
import { actingExternalIpPool } from './networks/external-ip-pool.workflow.ts';
import { actingExternalIp } from './networks/external-ip.workflow.ts';
import { actingNatGateway } from './networks/nat-gateway.workflow.ts';
import { actingSecurityGroup } from './networks/security-group.workflow.ts';
import { actingSubnet } from './networks/subnet.workflow.ts';
import { actingVirtualNetwork } from './networks/virtual-network.workflow.ts';
import type { Meter } from './metering/meter.ts';
import { actingVolume } from './storage/volume.workflow.ts';
import { TENANT } from './tenancy/hub-objects.ts';
import { inProject } from './tenancy/in-project.ts';
import { tenantSpaceWorkflow } from './tenancy/tenant-space.workflow.ts';
import type { AnyWorkflow } from './workflow.ts';

// Type parameters are forgotten, as in `kinds.ts`.
const listed = (kind: object): ActingKind => inProject(kind as ActingKind);

/** Every kind that acts: kinds, event types and objects on hubs follow from this list. */
export const actingKinds: readonly ActingKind[] = [
  actingCluster,
  actingComputeInstance,
  actingBareMetalInstance,
  actingExternalIpPool,
  actingExternalIp,
  actingVolume,
  actingExternalIpAttachment,
  actingVirtualNetwork,
  actingSubnet,
  actingSecurityGroup,
  actingNatGateway,
].map(listed);

export const actingKindOf = (kind: string): ActingKind | undefined =>
  actingKinds.find((each) => each.kind === kind);

/** What is carried out: the kinds that act, and what the service does for itself, which no surface shows. */
export const works: readonly {
  readonly workflow: AnyWorkflow;
  readonly hubObjects: readonly HubObject[];
}[] = [...actingKinds, { workflow: tenantSpaceWorkflow, hubObjects: [TENANT] }];

/** Name of the workflow that what is seen of such an object on a hub is told to. Throws RangeError for a kind of nobody's. */
export const workflowOn = (hubObject: string): string => {
  const found = works.find(({ hubObjects }) => hubObjects.some(({ kind }) => kind === hubObject));
  if (found === undefined) throw new RangeError(`objects of kind ${hubObject} are nobody's`);
  return found.workflow.name;
};

/** Those that somebody is billed for. */
export const meteredKinds: readonly (ActingKind & { readonly meter: Meter })[] = actingKinds.flatMap(
  (kind) => (kind.meter === undefined ? [] : [{ ...kind, meter: kind.meter }]),
);
