import { randomUUID } from 'node:crypto';
import { v7 } from 'uuid';
import type { EventStore, EventToAppend } from '../../../src/app/log/event-store.ts';
import type { ClusterEvent } from '../../../src/domain/clusters/state.ts';
import type { RunEvent } from '../../../src/domain/process/events.ts';

/** Orders that are under way at the same time: their events lie between each other in the log, as in a service. */
const CONCURRENT = 200;
const AT = '2026-11-21T10:00:00.000Z';

type Step = {
  readonly stream: 'cluster' | 'clusterOrder';
  readonly events: readonly (ClusterEvent | RunEvent)[];
};

const hostType = { id: '0190f000-0000-7000-8000-00000000a001', name: 'bm-large' };
const orderName = 'order-abcde';
const hub = 'sim-hub-1';

const started = (effectId: string): Step => ({
  stream: 'clusterOrder',
  events: [{ type: 'EffectStarted', data: { at: AT, effectId, attempt: 1, epoch: 1 } }],
});

/** What the log holds of one order that went to READY without trouble: one list entry is one append. */
const historyOf = (id: string, n: number): Step[] => [
  {
    stream: 'cluster',
    events: [
      {
        type: 'ClusterOrdered',
        data: {
          id,
          at: AT,
          tenant: `tenant-${n % 20}`,
          project: 'default',
          name: `cluster-${n}`,
          creator: '3f0d4c26-6f0e-4a58-9a3c-5b3d0a1f7c11',
          labels: { environment: 'bench', team: `team-${n % 7}` },
          annotations: {},
          template: { id: 'osac.templates.ocp_small', name: 'ocp-small', revision: 3 },
          templateParameters: {},
          nodeSets: { workers: { hostType, size: 3 }, gpu: { hostType, size: 1 } },
          version: {
            id: '0190f000-0000-7000-8000-00000000b001',
            name: '4-20-1',
            version: '4.20.1',
            releaseImage: 'quay.io/openshift-release-dev/ocp-release:4.20.1-x86_64',
          },
        },
      },
    ],
  },
  started('place:0.0'),
  {
    stream: 'cluster',
    events: [
      {
        type: 'HubSelected',
        data: {
          at: AT,
          hub,
          namespace: 'osac',
          mode: 'operator',
          simulated: true,
          controller: 'operator',
          steps: {},
          orderName,
          decision: {
            weightsVersion: 1,
            candidates: [{ hub, fits: true, reasons: [], scores: { spread: 1 }, total: 1 }],
          },
        },
      },
      { type: 'ClusterDispatchStarted', data: { at: AT, hub, orderName } },
    ],
  },
  started('apply:0.0.0'),
  { stream: 'cluster', events: [{ type: 'ClusterOrderPlaced', data: { at: AT, hub, orderName, uid: id } }] },
  {
    stream: 'cluster',
    events: [
      {
        type: 'ClusterConditionsObserved',
        data: {
          at: AT,
          conditions: { ClusterAvailable: { status: 'False', reason: 'NotReady', message: '', since: AT } },
        },
      },
    ],
  },
  {
    stream: 'cluster',
    events: [
      {
        type: 'ControlPlaneBecameAvailable',
        data: {
          at: AT,
          apiUrl: `https://api.cluster-${n}.example.com:6443`,
          consoleUrl: `https://console.cluster-${n}.example.com`,
          apiEndpoint: '192.0.2.10',
          ingressEndpoint: '192.0.2.11',
        },
      },
    ],
  },
  {
    stream: 'cluster',
    events: [
      { type: 'ClusterConditionsObserved', data: { at: AT, conditions: {}, ready: { workers: 1, gpu: 0 } } },
    ],
  },
  {
    stream: 'cluster',
    events: [
      { type: 'ClusterConditionsObserved', data: { at: AT, conditions: {}, ready: { workers: 3, gpu: 1 } } },
    ],
  },
  { stream: 'cluster', events: [{ type: 'ClusterBecameReady', data: { at: AT } }] },
];

export const EVENTS_PER_ORDER = historyOf('x', 0).reduce((sum, { events }) => sum + events.length, 0);

/** Writes the histories of so many orders, interleaved, each in its turn by one of `clients`. Returns the number of events. */
export const writeOrders = (store: EventStore, orders: number, clients = CONCURRENT): Promise<number> =>
  write(store, clients, (next) => next < orders);

/** The same for so long: orders that are under way then stay where they are. */
export const writeOrdersFor = (store: EventStore, seconds: number, clients: number): Promise<number> => {
  const end = performance.now() + seconds * 1000;
  return write(store, clients, () => performance.now() < end);
};

/** `more`: whether order number `n` goes on, asked before each of its appends. */
const write = async (store: EventStore, clients: number, more: (n: number) => boolean): Promise<number> => {
  let next = 0;
  let events = 0;
  const one = async (): Promise<void> => {
    while (more(next)) {
      const n = next;
      next += 1;
      const id = v7();
      const revisions = new Map<string, number>();
      for (const step of historyOf(id, n)) {
        if (!more(n)) return;
        const stream = `${step.stream}-${id}`;
        const appended = await store.append(
          stream,
          revisions.get(stream) ?? 'no_stream',
          step.events.map(encode(n)),
        );
        revisions.set(stream, appended.revision);
        events += step.events.length;
      }
    }
  };
  await Promise.all(Array.from({ length: clients }, one));
  return events;
};

const encode = (n: number) => {
  const commandId = randomUUID();
  return ({ type, data }: ClusterEvent | RunEvent): EventToAppend => ({
    id: randomUUID(),
    type,
    data: JSON.stringify(data),
    metadata: JSON.stringify({
      tenant: `tenant-${n % 20}`,
      project: 'default',
      actor: {
        subjectId: '3f0d4c26-6f0e-4a58-9a3c-5b3d0a1f7c11',
        roles: ['client'],
        authMethod: 'jwt',
        via: 'http',
      },
      command: 'OrderCluster',
      commandId,
      requestHash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      correlationId: commandId,
      causationId: commandId,
      occurredAt: AT,
      schemaVersion: 1,
      instance: 'bench',
    }),
  });
};
