import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { identify } from '../../../src/adapters/event-store/eventstoredb/store-id.ts';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import { createCheckpoint } from '../../../src/app/log/checkpoint.ts';
import { assertDeployment } from '../../../src/app/deployment/deployment.ts';
import { eventId } from '../../../src/app/log/identifiers.ts';
import { recordDivergence } from '../../../src/app/process-runner/session.ts';
import { registry } from '../../../src/domain/registry.ts';
import { collect, createFakeClock } from '../../support/commands/fake-context.ts';
import { createFakeIds } from '../../support/commands/fake-incarnation.ts';
import { manualTime } from '../../support/manual-time.ts';
import { silentLogger } from '../../support/loggers.ts';

const KEEP_ALL = 1_000_000;

/** Everything that the service ever writes into `sys-` streams, on one log that keeps all of it. */
const allBookkeeping = async () => {
  const memory = createMemoryEventStore({ singleWriter: false });
  const store = { ...memory, setMaxCount: (stream: string) => memory.setMaxCount(stream, KEEP_ALL) };
  const clock = createFakeClock();
  const [instance, ids] = ['one', createFakeIds('one')];
  await identify(store, instance);
  await assertDeployment({ store, fingerprint: 'f00d', name: 'ledger', clock, ids, instance });
  const checkpoint = createCheckpoint({ store, name: 'checkpoint-names', clock, ids, instance });
  await checkpoint.load();
  await checkpoint.save('0000000000000005');
  await recordDivergence({ store, clock, instance, logger: silentLogger, deltaMs: -7_200_000 });
  const time = manualTime();
  const lease = createLeases({
    store,
    instance,
    directory: instance,
    clock: time.clock,
    timers: time.timers,
    logger: silentLogger,
    ttlMs: 3000,
  })('processes');
  const stop = new AbortController();
  const held = lease.hold(
    stop.signal,
    ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
  );
  await time.pass(1500);
  stop.abort();
  await held;
  return collect(store.readAll({ limit: 100 }));
};

describe('bookkeeping of the service', () => {
  it('is registered, internal, valid by its schema, and has complete metadata and derived ids', async () => {
    const events = await allBookkeeping();
    expect([...new Set(events.map(({ type }) => type))].toSorted()).to.deep.equal([
      'CheckpointReached',
      'ClockDiverged',
      'DeploymentBound',
      'LeaseReleased',
      'LeaseRenewed',
      'LeaseTaken',
      'StoreIdentified',
    ]);
    for (const { id, type, stream, data, metadata } of events) {
      const entry = registry.get(type);
      expect(entry, type).to.include({ context: 'system', audience: 'internal', version: 1 });
      expect(entry?.schema.safeParse(data).success, type).to.equal(true);
      const { command, commandId, occurredAt, ...rest } = metadata;
      expect(rest, type).to.deep.equal({
        tenant: '',
        project: '',
        actor: { subjectId: 'system', roles: [], authMethod: 'internal', via: 'bookkeeping' },
        requestHash: '',
        correlationId: commandId,
        causationId: commandId,
        instance: 'one',
        schemaVersion: 1,
      });
      expect(command, type).to.match(/^[A-Z][A-Za-z]+$/);
      expect(occurredAt, type).to.equal(data['at']);
      expect(id, type).to.equal(eventId(typeof commandId === 'string' ? commandId : '', stream, 0));
    }
  });
});
