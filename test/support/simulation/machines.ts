import { meteredKinds } from '../../../src/domain/acting-kinds.ts';
import type { DomainEvent } from '../../../src/domain/decider.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import { parseStreamName } from '../../../src/domain/stream-name.ts';
import type { HubObjectRow } from '../hubs/hub-journal.ts';
import type { Request } from './api.ts';
import { creationIdOf, principalOf, type Clients } from './clients.ts';
import { BEGINNING } from './incarnation.ts';
import { Violation } from './invariants.ts';
import type { NetworkWorkload } from './networks.ts';
import { TENANTS } from './workload.ts';
import type { World } from './world.ts';

/** Hubs tell times in whole seconds: its machines take several for each way. */
const SLOW = { simulation: 'factor=10' };
const SECOND = 1_000;

type Made = readonly [path: string, body: JsonObject];

/** How machines of each kind are ordered and powered, what they are on a hub, and which part of their bill is power. */
export const MACHINES = {
  computeInstance: {
    collection: 'compute_instances',
    prefix: 'ComputeInstance',
    secret: 'UserDataSecret',
    powered: '',
    catalogue: [
      [
        'instance_types',
        { metadata: { name: 'small' }, spec: { cores: 2, memory_gib: 4, description: 'Small' } },
      ],
      [
        'disk_images',
        {
          id: 'image',
          metadata: { name: 'image', tenant: 'shared' },
          spec: {
            source_type: 'SOURCE_TYPE_REGISTRY',
            source_ref: 'quay.example/image:1',
            architecture: ['ARCHITECTURE_AMD64'],
          },
        },
      ],
      [
        'compute_instance_templates',
        {
          id: 'machine',
          metadata: { name: 'machine' },
          title: 'Machine',
          spec_defaults: {
            instance_type: { name: 'small' },
            disk_image: { id: 'image' },
            boot_disk: { size_gib: 20 },
            run_strategy: 'Always',
          },
        },
      ],
    ] as readonly Made[],
    spec: { template: { id: 'machine' } },
    strategies: { on: 'Always', off: 'Halted' },
    again: (now: number): JsonObject => ({ restart_requested_at: new Date(now).toISOString() }),
    retouch: { spec: { ssh_public_key: 'ssh-ed25519 AAAA' } },
  },
  bareMetalInstance: {
    collection: 'baremetal_instances',
    prefix: 'BareMetalInstance',
    secret: 'BareMetalUserDataSecret',
    powered: 'powered',
    catalogue: [
      [
        'baremetal_instance_templates',
        { id: 'server', metadata: { name: 'server', tenant: 'shared' }, title: 'Server' },
      ],
      [
        'baremetal_instance_catalog_items',
        {
          id: 'server',
          metadata: { name: 'server', tenant: 'shared' },
          title: 'Server',
          template: { id: 'server' },
          published: true,
          field_definitions: [
            ['run_strategy', 'BARE_METAL_INSTANCE_RUN_STRATEGY_ALWAYS'],
            ['restart_trigger', '0'],
            ['network_attachments', []],
            ['user_data', ''],
          ].map(([path, value]) => ({ path, display_name: path, editable: true, default: value })),
        } as unknown as JsonObject,
      ],
    ] as readonly Made[],
    spec: { catalog_item: { id: 'server' } },
    strategies: {
      on: 'BARE_METAL_INSTANCE_RUN_STRATEGY_ALWAYS',
      off: 'BARE_METAL_INSTANCE_RUN_STRATEGY_HALTED',
    },
    again: (now: number): JsonObject => ({ restart_trigger: String(Math.floor(now)) }),
    retouch: { metadata: { labels: { touched: 'yes' } } },
  },
} as const;
export type MachineKind = keyof typeof MACHINES;

export type MachineWorkload = ReturnType<typeof createMachineWorkload>;

/** What a tenant does with machines of one kind. */
export const createMachineWorkload = (
  world: World,
  clients: Clients,
  networks: NetworkWorkload,
  kind: MachineKind,
) => {
  const { collection, catalogue, spec: ordered, strategies, again, retouch } = MACHINES[kind];
  const [tenant] = TENANTS;
  let requests = 0;
  const ask = (verb: Request['verb'], path: string, body: JsonObject, of?: string): Request => ({
    verb,
    surface: of === undefined ? 'private' : 'public',
    path,
    body,
    idempotencyKey: `m${(requests += 1)}`,
    principal: principalOf(of),
  });
  /** What it refers to may not be known or ready yet. */
  const make = async (path: string, body: JsonObject, of?: string): Promise<string> => {
    for (let tries = 1; ; tries += 1) {
      const request = ask('POST', path, body, of);
      const reply = await clients.send(request);
      if (reply?.status === 200) return stringAt(reply.body, 'id') || creationIdOf(request);
      if (tries === 100) throw new Violation(`${path}: ${reply?.status} ${reply?.message}`);
      await world.agenda.sleep('client', 500);
    }
  };
  /** Made and ready; operators act on what fails. */
  const has = async (create: () => Promise<string | undefined>): Promise<string> => {
    const id = await create();
    for (let tries = 1; id !== undefined && tries <= 10; tries += 1) {
      if (await networks.become(id)) return id;
      await networks.retryFailed();
    }
    throw new Violation(`${id} is not ready`);
  };
  const revise = async (id: string, body: JsonObject): Promise<void> => {
    const reply = await clients.send(ask('PATCH', `${collection}/${id}`, body, tenant));
    if (reply?.status !== 200) throw new Violation(`${id}: ${reply?.status} ${reply?.message}`);
  };

  return {
    prepare: async (): Promise<void> => {
      for (const [path, body] of catalogue) await make(path, body);
    },
    /** In a network of its own, with a secret beside it. */
    order: async (): Promise<string> => {
      const network = await has(() => networks.network(tenant, 'net'));
      const subnet = await has(() => networks.subnet(tenant, 'front', network, '10.0.1.0/24'));
      const group = await has(() => networks.group(tenant, 'web', network));
      const spec = {
        ...ordered,
        network_attachments: [{ subnet: { id: subnet }, security_groups: [{ id: group }] }],
        user_data: '#cloud-config',
      };
      return make(collection, { metadata: { name: 'vm', annotations: SLOW }, spec }, tenant);
    },
    stop: (id: string) => revise(id, { spec: { run_strategy: strategies.off } }),
    start: (id: string) => revise(id, { spec: { run_strategy: strategies.on } }),
    restart: (id: string) => revise(id, { spec: again(BEGINNING + world.agenda.now()) }),
    /** A change that does not touch what runs. */
    retouch: (id: string) => revise(id, retouch),
    remove: async (id: string): Promise<void> => {
      await clients.send(ask('DELETE', `${collection}/${id}`, {}, tenant));
    },
  };
};

type Interval = readonly [from: number, to: number];

/** Each machine is billed for the time in which its hub had it running, up to its deletion, and for no other. */
export const checkBills = (world: World): void => {
  const now = BEGINNING + Math.floor(world.agenda.now());
  const objects = world.plan.hubs.flatMap(({ id }) => world.objectsOn(id));
  for (const kind of Object.keys(MACHINES) as MachineKind[])
    for (const stream of world.ledger.streams(kind)) {
      const { id } = parseStreamName(stream);
      const its = objects.filter((object) => object.kind === MACHINES[kind].prefix && object.id === id);
      const wrong = wrongBill(world.ledger.events(stream), its, now, kind);
      if (wrong !== undefined) world.fail(new Violation(`${stream} ${wrong}`));
    }
};

/** How the bill that the events of a machine give differs from what its objects on hubs say; undefined: it does not. */
export const wrongBill = (
  events: readonly { readonly type: string; readonly data: JsonObject }[],
  objects: readonly HubObjectRow[],
  now: number,
  kind: MachineKind = 'computeInstance',
): string | undefined => {
  const asked = events.find(({ type }) => type === `${MACHINES[kind].prefix}DeletionRequested`);
  const end = asked === undefined ? now : Date.parse(stringAt(asked.data, 'at'));
  const ran = objects
    .flatMap((object) => object.ran)
    .map(([from, to]): Interval => [from, Math.min(to ?? end, end)])
    .filter(([from, to]) => from < to);
  const billed = billedTime(kind, events as readonly DomainEvent[], end);
  const isSame = (a: number, b: number | undefined): boolean => Math.abs(a - (b ?? 0)) <= SECOND;
  const agrees =
    ran.length === billed.length &&
    ran.every(([from, to], i) => isSame(from, billed[i]?.[0]) && isSame(to, billed[i]?.[1]));
  return agrees ? undefined : `ran ${text(ran)}, but is billed ${text(billed)}`;
};

const billedTime = (kind: MachineKind, events: readonly DomainEvent[], end: number): readonly Interval[] => {
  const { powered } = MACHINES[kind];
  const of = meteredKinds.find((one) => one.kind === kind)?.meter;
  if (of === undefined) throw new TypeError(`${kind} is not metered`);
  let meter = of.initial();
  const closed = events.flatMap((event) => {
    const step = of.fold(meter, event);
    meter = step.meter;
    return step.closed;
  });
  return [...closed, ...meter.open.map((open) => ({ ...open, untilMs: end }))]
    .filter(({ component }) => component.nodeSet === powered)
    .map(({ sinceMs, untilMs }): Interval => [sinceMs, untilMs])
    .filter(([from, to]) => from < to);
};

const text = (intervals: readonly Interval[]): string =>
  `[${intervals.map((interval) => interval.map((ms) => new Date(ms).toISOString()).join(' to ')).join(', ')}]`;
