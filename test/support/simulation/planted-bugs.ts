import {
  WrongExpectedRevision,
  type Appended,
  type EventStore,
  type ExpectedRevision,
  type SubscriptionItem,
} from '../../../src/app/log/event-store.ts';
import { AutomationError, type Automation } from '../../../src/app/automation/automation.ts';
import { HubError, type ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import type { SystemPorts } from '../../../src/composition/system.ts';
import type { Drill } from './drill.ts';
import type { Life } from './life.ts';
import type { RealHubPlan } from './plan.ts';
import type { Plant } from './world.ts';

/**
 * Known bugs, planted around the ports of a sound system: what a mistake in the product would do to the outside. The
 * simulation has to find every one of them, or it proves nothing.
 */
export const PLANTED = {
  'an effect is performed before its EffectStarted is stored': (ports, life) =>
    withStore(ports, (store) => ({
      append: (stream, expected, events, options) => {
        if (events[0]?.type !== 'EffectStarted') return store.append(stream, expected, events, options);
        life.agenda.after(life.owner, 5, () => {
          store.append(stream, expected, events, options).catch(() => undefined);
        });
        return Promise.resolve(pretended(expected, events.length));
      },
    })),

  'a command is acknowledged before it is stored': (ports) =>
    withStore(ports, (store) => ({
      append: (stream, expected, events, options) => {
        const stored = store.append(stream, expected, events, options);
        if (!stream.startsWith('cluster-')) return stored;
        stored.catch(() => undefined);
        return Promise.resolve(pretended(expected, events.length));
      },
    })),

  'an append goes to whatever revision the stream has': (ports) =>
    withStore(ports, (store) => ({
      append: async (stream, expected, events, options) => {
        try {
          return await store.append(stream, expected, events, options);
        } catch (error) {
          if (!(error instanceof WrongExpectedRevision)) throw error;
          return store.append(stream, error.actual, events, options);
        }
      },
    })),

  'a name is taken without being reserved': (ports) => withoutStoring(ports, 'NameReserved'),

  'the ranges of a subnet are not claimed': (ports) => withoutStoring(ports, 'SubnetRangesClaimed'),

  'an address is attached without being claimed': (ports) => withoutStoring(ports, 'ExternalIPAttached'),

  'two pools are given the same addresses': (ports) => withoutStoring(ports, 'PoolRangesClaimed'),

  'a place on a hub is not given back': (ports) => withoutStoring(ports, 'HubCapacityReleased'),

  'an address is not given back to its pool': (ports) => withoutStoring(ports, 'AddressReleased'),

  'a tenant gets a part of what it should get from the start': (ports) =>
    withStore(ports, (store) => ({
      append: (stream, expected, events, options) =>
        stream.startsWith('securityGroup-default-') && expected === 'no_stream'
          ? Promise.resolve(pretended(expected, events.length))
          : store.append(stream, expected, events, options),
    })),

  'what a tenant had on a hub stays there': (ports) =>
    withHubs(ports, (hub) => ({
      get: (kind, ref, by) =>
        kind.kind === 'Tenant' && by.effectId.includes('/undo')
          ? Promise.resolve(undefined)
          : hub.get(kind, ref, by),
      delete: (kind, ref, by) =>
        kind.kind === 'Tenant' ? Promise.resolve('absent' as never) : hub.delete(kind, ref, by),
    })),

  'machines are billed by when they were looked at': (ports) =>
    withStore(ports, (store) => ({
      append: (stream, expected, events, options) =>
        store.append(
          stream,
          expected,
          events.map((event) =>
            event.type === 'ComputeInstanceObserved'
              ? {
                  ...event,
                  data: JSON.stringify({ ...(JSON.parse(event.data) as object), at: ports.clock.now() }),
                }
              : event,
          ),
          options,
        ),
    })),

  'a server is billed while it is off': (ports) =>
    withStore(ports, (store) => ({
      append: (stream, expected, events, options) =>
        store.append(
          stream,
          expected,
          events.map((event) => {
            if (event.type !== 'BareMetalInstanceObserved' || !event.data.includes('PowerOff')) return event;
            const at = new Date(Date.parse(ports.clock.now()) + 60_000).toISOString();
            return { ...event, data: JSON.stringify({ ...(JSON.parse(event.data) as object), at }) };
          }),
          options,
        ),
    })),

  'what may have been sent is repeated without a look': (ports) =>
    withHubs(ports, (hub) => ({
      get: (kind, ref, by) => (isApply(by.effectId) ? Promise.resolve(undefined) : hub.get(kind, ref, by)),
      find: (kind, namespace, id, by) =>
        isApply(by.effectId) ? Promise.resolve([]) : hub.find(kind, namespace, id, by),
    })),

  'a lost answer is taken for a failure': (ports) =>
    withHubs(ports, (hub) => ({
      create: (kind, manifest, by) => hub.create(kind, manifest, by).catch(asFailure),
      patch: (kind, ref, spec, by) => hub.patch(kind, ref, spec, by).catch(asFailure),
    })),

  'a machine is billed from when it is seen, not from when it runs': (ports) =>
    withHubs(ports, (hub) => ({
      get: async (kind, ref, by) => withoutTimes(await hub.get(kind, ref, by)),
      watch: async function* (kind, namespace, signal) {
        for await (const event of hub.watch(kind, namespace, signal)) yield withoutTimes(event);
      },
    })),

  'every attempt makes up a name of its own': (ports, life) =>
    withHubs(ports, (hub) => ({
      create: (kind, manifest, by) =>
        hub.create(kind, { ...manifest, name: `${manifest.name}-${life.random.int(10, 99)}` }, by),
    })),

  'what is being deleted is taken for gone': (ports) =>
    withHubs(ports, (hub) => ({
      get: async (kind, ref, by) => {
        const shown = await hub.get(kind, ref, by);
        const { deletionTimestamp } = (shown ?? {}) as { deletionTimestamp?: string };
        return deletionTimestamp === undefined ? shown : undefined;
      },
      find: async (kind, namespace, id, by) =>
        (await hub.find(kind, namespace, id, by)).filter(
          ({ deletionTimestamp }) => deletionTimestamp === undefined,
        ),
    })),

  'a job that may have been launched is not looked for': (ports) =>
    withAutomations(ports, (automation) =>
      automation.findJobs === undefined ? {} : { findJobs: () => Promise.resolve([]) },
    ),

  'a webhook whose answer was lost is posted again at once': (ports) =>
    withAutomations(ports, (automation) => ({
      trigger: (request, by) =>
        automation.trigger(request, by).catch((error: unknown) => {
          if (!(error instanceof AutomationError) || error.kind !== 'unknown-outcome') throw error;
          return automation.trigger(request, by);
        }),
    })),

  'a job counts as ended once it was asked to end': (ports) =>
    withAutomations(ports, ({ job }) => {
      const asked = new Set<string>();
      if (job === undefined) return {};
      return {
        cancel: ({ id }) => {
          asked.add(id);
          return Promise.resolve(true);
        },
        job: async (which, by) => {
          const shown = await job(which, by);
          return shown === undefined || !asked.has(which.id) ? shown : { ...shown, state: 'Canceled' };
        },
      };
    }),

  'what was asked to go from a hub is taken for gone': (ports) =>
    withHubs(ports, ({ controller }) =>
      controller === undefined
        ? {}
        : {
            controller: {
              ...controller,
              release: async (kind, place, by) => {
                await controller.release(kind, place, by);
                return { released: true, waitingFor: [] };
              },
            },
          },
    ),

  'some timers never fire': (ports, life) => ({
    ...ports,
    timers: {
      after: (ms, run) => (life.random.chance(0.01) ? () => undefined : ports.timers.after(ms, run)),
    },
  }),

  'what was cancelled stays in the queue of timers': (ports) => ({
    ...ports,
    timers: {
      after: (ms, run) => {
        let cancelled = false;
        ports.timers.after(ms, () => {
          if (!cancelled) run();
        });
        return () => {
          cancelled = true;
        };
      },
    },
  }),

  'a read model misses an event': (ports, life) => {
    const { source } = ports.readModels;
    if (source.kind !== 'inline') return ports;
    const { reader } = source;
    const leaky = {
      ...reader,
      subscribe: (options: Parameters<EventStore['subscribe']>[0]) =>
        missing(reader.subscribe(options), life),
    };
    return { ...ports, readModels: { ...ports.readModels, source: { ...source, reader: leaky } } };
  },
} as const satisfies { readonly [bug: string]: Plant };

export type PlantedBug = keyof typeof PLANTED;

/** Bugs in what is done on hubs of one mode only. They are looked for there: most worlds have none. */
export const MODE_OF: { readonly [Bug in PlantedBug]?: RealHubPlan['mode'] } = {
  'a job that may have been launched is not looked for': 'aap',
  'a webhook whose answer was lost is posted again at once': 'eda',
  'a job counts as ended once it was asked to end': 'aap',
};

/** Bugs in what only worlds of all kinds have. */
export const OF_EVERY_KIND: ReadonlySet<PlantedBug> = new Set<PlantedBug>([
  'the ranges of a subnet are not claimed',
  'an address is attached without being claimed',
  'two pools are given the same addresses',
  'a place on a hub is not given back',
  'an address is not given back to its pool',
  'a tenant gets a part of what it should get from the start',
  'what a tenant had on a hub stays there',
  'machines are billed by when they were looked at',
  'a server is billed while it is off',
]);

/** What they are found by where no world of a seed shows them. */
export const DRILL_OF: { readonly [Bug in PlantedBug]?: Drill } = {
  'a machine is billed from when it is seen, not from when it runs': {
    machines: 'computeInstance',
    restless: true,
  },
};

const withStore = (ports: SystemPorts, change: (store: EventStore) => Partial<EventStore>): SystemPorts => ({
  ...ports,
  store: { ...ports.store, ...change(ports.store) },
});

/** Such an event is taken for stored, and is not. */
const withoutStoring = (ports: SystemPorts, type: string): SystemPorts =>
  withStore(ports, (store) => ({
    append: (stream, expected, events, options) =>
      events[0]?.type === type
        ? Promise.resolve(pretended(expected, events.length))
        : store.append(stream, expected, events, options),
  }));

const withHubs = (
  ports: SystemPorts,
  change: (hub: ManagementCluster) => Partial<ManagementCluster>,
): SystemPorts => {
  const changed = new Map<string, ManagementCluster>();
  return {
    ...ports,
    clusters: {
      of: (which) => {
        const known = changed.get(which.id);
        if (known !== undefined) return known;
        const hub = ports.clusters.of(which);
        if (hub === undefined) return undefined;
        const wrong = { ...hub, ...change(hub) };
        changed.set(which.id, wrong);
        return wrong;
      },
    },
  };
};

const withAutomations = (
  ports: SystemPorts,
  change: (automation: Automation) => Partial<Automation>,
): SystemPorts => {
  const { automations } = ports;
  if (automations === undefined) return ports;
  const changed = new Map<string, Automation>();
  return {
    ...ports,
    automations: {
      ...automations,
      of: (connection) => {
        const known = changed.get(connection.hub);
        if (known !== undefined) return known;
        const automation = automations.of(connection);
        const wrong = { ...automation, ...change(automation) };
        changed.set(connection.hub, wrong);
        return wrong;
      },
    },
  };
};

/** The answer that an append would have had, had it happened already. */
const pretended = (expected: ExpectedRevision, events: number): Appended => ({
  revision: (expected === 'no_stream' ? -1 : expected) + events,
  position: '0000000000000001',
  duplicate: false,
});

const withoutTimes = <T>(shown: T): T =>
  shown === undefined
    ? shown
    : (JSON.parse(
        JSON.stringify(shown, (key, value: unknown) => (key === 'lastTransitionTime' ? undefined : value)),
      ) as T);

const isApply = (effectId: string): boolean => effectId.includes('/apply:');

const asFailure = (error: unknown): never => {
  if (error instanceof HubError && error.kind === 'unknown-outcome') {
    throw new HubError('unavailable', error.message);
  }
  throw error;
};

/** The subscription of the process runner is the one that hears of runs. */
async function* missing(
  items: AsyncIterable<SubscriptionItem>,
  life: Life,
): AsyncGenerator<SubscriptionItem> {
  for await (const item of items) {
    const missed = item.kind === 'event' && item.event.stream.startsWith('cluster-');
    if (missed && life.random.chance(0.02)) continue;
    yield item;
  }
}
