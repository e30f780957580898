import { instanceMeter } from '../../../src/domain/compute/instance-meter.ts';
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

export type MachineWorkload = ReturnType<typeof createMachineWorkload>;

/** What a tenant does with virtual machines. */
export const createMachineWorkload = (world: World, clients: Clients, networks: NetworkWorkload) => {
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
  const change = async (id: string, spec: JsonObject): Promise<void> => {
    const reply = await clients.send(ask('PATCH', `compute_instances/${id}`, { spec }, tenant));
    if (reply?.status !== 200) throw new Violation(`${id}: ${reply?.status} ${reply?.message}`);
  };

  return {
    prepare: async (): Promise<void> => {
      await make('instance_types', {
        metadata: { name: 'small' },
        spec: { cores: 2, memory_gib: 4, description: 'Small' },
      });
      await make('disk_images', {
        id: 'image',
        metadata: { name: 'image', tenant: 'shared' },
        spec: {
          source_type: 'SOURCE_TYPE_REGISTRY',
          source_ref: 'quay.example/image:1',
          architecture: ['ARCHITECTURE_AMD64'],
        },
      });
      await make('compute_instance_templates', {
        id: 'machine',
        metadata: { name: 'machine' },
        title: 'Machine',
        spec_defaults: {
          instance_type: { name: 'small' },
          disk_image: { id: 'image' },
          boot_disk: { size_gib: 20 },
          run_strategy: 'Always',
        },
      });
    },
    /** In a network of its own, with a secret beside it. */
    order: async (): Promise<string> => {
      const network = await has(() => networks.network(tenant, 'net'));
      const subnet = await has(() => networks.subnet(tenant, 'front', network, '10.0.1.0/24'));
      const group = await has(() => networks.group(tenant, 'web', network));
      const spec = {
        template: { id: 'machine' },
        network_attachments: [{ subnet: { id: subnet }, security_groups: [{ id: group }] }],
        user_data: '#cloud-config',
      };
      return make('compute_instances', { metadata: { name: 'vm', annotations: SLOW }, spec }, tenant);
    },
    stop: (id: string) => change(id, { run_strategy: 'Halted' }),
    start: (id: string) => change(id, { run_strategy: 'Always' }),
    restart: (id: string) =>
      change(id, { restart_requested_at: new Date(BEGINNING + world.agenda.now()).toISOString() }),
    /** A change that does not touch what runs. */
    retouch: (id: string) => change(id, { ssh_public_key: 'ssh-ed25519 AAAA' }),
    remove: async (id: string): Promise<void> => {
      await clients.send(ask('DELETE', `compute_instances/${id}`, {}, tenant));
    },
  };
};

type Interval = readonly [from: number, to: number];

/** Each machine is billed for the time in which its hub had it running, up to its deletion, and for no other. */
export const checkBills = (world: World): void => {
  const now = BEGINNING + Math.floor(world.agenda.now());
  const objects = world.plan.hubs.flatMap(({ id }) => world.objectsOn(id));
  for (const stream of world.ledger.streams('computeInstance')) {
    const { id } = parseStreamName(stream);
    const wrong = wrongBill(world.ledger.events(stream), objectsOf(objects, id), now);
    if (wrong !== undefined) world.fail(new Violation(`${stream} ${wrong}`));
  }
};

const objectsOf = (objects: readonly HubObjectRow[], id: string): readonly HubObjectRow[] =>
  objects.filter((object) => object.kind === 'ComputeInstance' && object.id === id);

/** How the bill that the events of a machine give differs from what its objects on hubs say; undefined: it does not. */
export const wrongBill = (
  events: readonly { readonly type: string; readonly data: JsonObject }[],
  objects: readonly HubObjectRow[],
  now: number,
): string | undefined => {
  const asked = events.find(({ type }) => type === 'ComputeInstanceDeletionRequested');
  const end = asked === undefined ? now : Date.parse(stringAt(asked.data, 'at'));
  const ran = objects
    .flatMap((object) => object.ran)
    .map(([from, to]): Interval => [from, Math.min(to ?? end, end)])
    .filter(([from, to]) => from < to);
  const billed = billedTime(events as readonly DomainEvent[], end);
  const isSame = (a: number, b: number | undefined): boolean => Math.abs(a - (b ?? 0)) <= SECOND;
  const agrees =
    ran.length === billed.length &&
    ran.every(([from, to], i) => isSame(from, billed[i]?.[0]) && isSame(to, billed[i]?.[1]));
  return agrees ? undefined : `ran ${text(ran)}, but is billed ${text(billed)}`;
};

const billedTime = (events: readonly DomainEvent[], end: number): readonly Interval[] => {
  let meter = instanceMeter.initial();
  const closed = events.flatMap((event) => {
    const step = instanceMeter.fold(meter, event);
    meter = step.meter;
    return step.closed.map(({ sinceMs, untilMs }): Interval => [sinceMs, untilMs]);
  });
  return [...closed, ...meter.open.map(({ sinceMs }): Interval => [sinceMs, end])].filter(
    ([from, to]) => from < to,
  );
};

const text = (intervals: readonly Interval[]): string =>
  `[${intervals.map((interval) => interval.map((ms) => new Date(ms).toISOString()).join(' to ')).join(', ')}]`;
