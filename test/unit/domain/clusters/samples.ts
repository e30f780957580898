import type { PlacementDecision } from '../../../../src/domain/hubs/capacity-events.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { orderName } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import type { Assessment } from '../../../../src/domain/clusters/observation.ts';
import type { ClusterObservation, ObservedOrder } from '../../../../src/domain/clusters/observed.ts';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import { configVersion } from '../../../../src/domain/clusters/observation.ts';
import { clusterOrderSpec } from '../../../../src/domain/clusters/cluster-order-manifest.ts';

/** What the specs of the clusters context share: one order and its usual history. */
export const ID = '01a1fdbf-853f-7699-b03b-202e1bbb7ff3';
export const HUB = 'sim-east-1';
export const ORDER_NAME = orderName(ID);
export const time = (minute: number): string => `2026-11-21T12:${String(minute).padStart(2, '0')}:00.000Z`;

export const ordered: Extract<ClusterEvent, { type: 'ClusterOrdered' }>['data'] = {
  id: ID,
  at: time(0),
  tenant: 't1',
  project: '',
  name: 'my-cluster',
  creator: 'user-1',
  labels: { env: 'dev' },
  annotations: {},
  template: { id: 'osac.templates.small', name: 'small', revision: 0 },
  templateParameters: {
    flavour: { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: 'plain' },
  },
  nodeSets: {
    workers: { hostType: { id: 'fc430', name: 'fc430' }, size: 3, fabricInterface: 'nic1' },
    gpu: { hostType: { id: 'g5', name: 'g5' }, size: 2 },
  },
  version: {
    id: 'v1',
    name: '4-20-3-abcd',
    version: '4.20.3',
    releaseImage: 'registry.invalid/release:4.20.3',
  },
  sshPublicKey: 'ssh-ed25519 AAAA',
  pullSecret: { id: 'ps', version: '1', kind: 'pull-secret', fingerprint: '0123456789abcdef' },
};

export const decision: PlacementDecision = {
  weightsVersion: 1,
  candidates: [{ hub: HUB, fits: true, reasons: [], scores: { spread: 100 }, total: 100 }],
};
export const noRoom: PlacementDecision = {
  weightsVersion: 1,
  candidates: [
    { hub: HUB, fits: false, reasons: ['control planes: 1 wanted, 0 left'], scores: {}, total: 0 },
  ],
};

const selectedData = {
  at: time(1),
  hub: HUB,
  namespace: 'osac-hub',
  mode: 'operator',
  simulated: true,
  controller: 'operator',
  steps: { agents: 'ledger' },
  orderName: ORDER_NAME,
  decision,
} as const;

export const order: ClusterEvent = { type: 'ClusterOrdered', data: ordered };
export const orderCommand: ClusterCommand = { type: 'OrderCluster', ...ordered };
export const selected: ClusterEvent = { type: 'HubSelected', data: selectedData };
export const selectCommand: ClusterCommand = { type: 'SelectHub', ...selectedData };
export const dispatched: ClusterEvent = {
  type: 'ClusterDispatchStarted',
  data: { at: time(2), hub: HUB, orderName: ORDER_NAME },
};
export const placed: ClusterEvent = {
  type: 'ClusterOrderPlaced',
  data: { at: time(3), hub: HUB, orderName: ORDER_NAME, uid: 'uid-1' },
};
export const becameReady: ClusterEvent = { type: 'ClusterBecameReady', data: { at: time(9) } };
export const deletionRequested: ClusterEvent = { type: 'ClusterDeletionRequested', data: { at: time(20) } };
/** Histories by how far they go. */
export const onHub: ClusterEvent[] = [order, selected, dispatched, placed];
export const readyHistory: ClusterEvent[] = [...onHub, becameReady];

export const absence: ClusterEvent = {
  type: 'ClusterDeleted',
  data: { at: time(30), how: 'absence-confirmed' },
};
export const failed = (permanent: boolean): ClusterEvent => ({
  type: 'ClusterFailed',
  data: { at: time(5), reason: 'JobFailed', message: 'boom', permanent },
});
export const finalizers = (...names: string[]): ClusterEvent => ({
  type: 'ClusterFinalizersChanged',
  data: { at: time(5), finalizers: names },
});
/** At minute 30. */
export const change = (
  changes: Extract<ClusterCommand, { type: 'ReviseCluster' }>['changes'],
): ClusterCommand => ({ type: 'ReviseCluster', at: time(30), changes });

export type Shown = Extract<Assessment, { found: true }>;
export const assessment = (change: Partial<Shown> = {}): Shown => ({
  found: true,
  uid: 'uid-1',
  deleting: false,
  waitingFor: [],
  accepted: true,
  specMatches: true,
  conditions: {
    ClusterAvailable: { status: 'True', reason: 'AsExpected', message: '' },
    NodesReady: { status: 'True', reason: 'AsExpected', message: '' },
    InfrastructureReady: { status: 'True', reason: 'AsExpected', message: '' },
    TemplateApplied: { status: 'True', reason: 'AsExpected', message: '' },
  },
  controlPlane: {
    apiUrl: 'https://api.example:6443',
    consoleUrl: 'https://console.example',
    apiEndpoint: '10.0.0.5',
    ingressEndpoint: '10.0.0.6',
  },
  ready: { workers: 3, gpu: 2 },
  verdict: { kind: 'ready' },
  ...change,
});

const spec = clusterOrderSpec(ordered);

/** The hub's order as a healthy operator shows it at the end. */
export const observedOrder = (change: Partial<ObservedOrder> = {}): ObservedOrder => {
  const stored = change.spec ?? spec;
  return {
    uid: 'uid-1',
    finalizers: ['osac.openshift.io/finalizer'],
    spec: stored,
    phase: 'Ready',
    conditions: [{ type: 'ControlPlaneCreated', status: 'True', reason: 'AsExpected' }],
    desiredConfigVersion: configVersion(stored),
    jobs: [
      {
        jobId: '101',
        type: 'provision',
        state: 'Succeeded',
        timestamp: time(3),
        configVersion: configVersion(stored),
      },
    ],
    apiEndpoint: '10.0.0.5',
    ingressEndpoint: '10.0.0.6',
    ...change,
  };
};

export const hosted = (
  conditions: { readonly [type: string]: string } = {},
  nodes: { readonly [resourceClass: string]: number } = { fc430: 3, g5: 2 },
): NonNullable<ClusterObservation['hostedCluster']> => ({
  name: ORDER_NAME,
  conditions: Object.entries({
    Available: 'True',
    Degraded: 'False',
    ClusterVersionSucceeding: 'True',
    ...conditions,
  }).map(([type, status]) => ({ type, status, reason: `${type}Reason`, message: `${type} is ${status}` })),
  controlPlaneEndpoint: { host: 'api.example', port: 6443 },
  baseDomain: 'example.test',
  nodePools: Object.entries(nodes).map(([resourceClass, ready]) => ({
    resourceClass,
    desired: ready,
    ready,
  })),
});

export const healthy = (change: Partial<ClusterObservation> = {}): ClusterObservation => ({
  order: observedOrder(),
  hostedCluster: hosted(),
  ...change,
});
