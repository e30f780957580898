import { expect } from 'chai';
import { evolveCluster } from '../../../src/domain/clusters/cluster.ts';
import { type ClusterEvent, initialCluster, type ClusterState } from '../../../src/domain/clusters/state.ts';
import { HUB, onHub, order, ordered } from '../domain/clusters/samples.ts';
import { orderLog, logRefusal } from '../../../src/app/process-runner/order-log.ts';
import type { Logger } from '../../../src/app/ports.ts';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { silentLogger } from '../../support/loggers.ts';
import { accounts } from '../../support/commands/fake-account.ts';
import { createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';
import { open } from './accounts-at-work.ts';

const ID = '01997a3c-0000-7000-8000-000000000001';

describe('the lines about orders', () => {
  let lines: { fields: object; message: string }[];
  let logger: Logger;
  beforeEach(() => {
    lines = [];
    logger = { ...silentLogger, info: (fields, message) => void lines.push({ fields, message }) };
  });

  it('tell what became of one, whose it is and where, and nothing that people typed', () => {
    const typed = { ...order, data: { ...ordered, tenant: 'acme', project: 'p-typed', name: 'n-typed' } };
    const state = [typed, ...onHub.slice(1)].reduce<ClusterState>(
      (before, event) => evolveCluster(before, event as ClusterEvent),
      initialCluster(),
    );
    const tell = orderLog(logger);
    const failed = { reason: 'JobFailed', message: 'job 7 ended', detail: 'at aap.internal' };
    tell(
      `cluster-${ID}`,
      [
        { type: 'ClusterConditionsObserved', data: {} },
        { type: 'ClusterFailed', data: failed },
      ],
      { correlationId: 'c-1' },
      state,
    );
    tell(`cluster-${ID}`, [{ type: 'ClusterBecameReady', data: {} }], { correlationId: 'c-2' }, state);
    tell(`tenant-${ID}`, [{ type: 'ClusterFailed', data: failed }], { correlationId: 'c-3' }, state);
    const about = { cluster: ID, tenant: 'acme', hub: HUB };
    expect(lines).to.deep.equal([
      {
        fields: { ...about, reason: 'JobFailed', why: 'job 7 ended', correlationId: 'c-1' },
        message: 'order failed',
      },
      { fields: { ...about, correlationId: 'c-2' }, message: 'order ready' },
    ]);
  });

  it('tell of a refusal the code, and an id only where the service made it', () => {
    const rejection = { tenant: 'acme', code: 'NO_ROOM' };
    const about = { kind: 'cluster', outcome: 'rejected' } as const;
    logRefusal(logger, { ...about, resourceId: ID }, rejection);
    logRefusal(logger, { ...about, resourceId: 'alice-smith' }, rejection);
    logRefusal(logger, { ...about, kind: 'hub' }, rejection);
    expect(lines).to.deep.equal([
      { fields: { cluster: ID, ...rejection }, message: 'order refused' },
      { fields: rejection, message: 'order refused' },
      { fields: { rejection }, message: 'refused' },
    ]);
  });

  it('are told once for each append of a command, and not for its repetition', async () => {
    const stored: string[] = [];
    const { runner } = createTestRunner(createMemoryEventStore(), {
      hooks: {
        onStored: (stream, events, { correlationId }) =>
          void stored.push(`${stream} ${events.map(({ type }) => type).join()} ${correlationId}`),
      },
    });
    await runner.execute(accounts, 'a', open, fakeContext('c1'));
    await runner.execute(accounts, 'a', open, fakeContext('c1'));
    expect(stored).to.deep.equal(['account-a AccountOpened c1']);
  });
});
