import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createAuditGrants } from '../../../src/app/audit/grants.ts';
import type { CommandRunner } from '../../../src/app/commands/command.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { AuditGrantCommand } from '../../../src/domain/audit/grant.ts';
import { auditGrantAggregate } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';
import { createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';
import { recordingLogger } from '../../support/loggers.ts';

const AT = '2026-01-01T00:00:00.000Z';

describe('audit grants that tenants are told of', () => {
  let store: EventStore;
  let models: ReadModels;
  let logger: ReturnType<typeof recordingLogger>;
  let shared: ReturnType<typeof createTestRunner>;
  let commands = 0;
  beforeEach(async () => {
    store = createMemoryEventStore();
    models = await openAuditView(store);
    logger = recordingLogger();
    shared = createTestRunner(store, { codec: createEventCodec(eventTypes) });
  });
  afterEach(async () => {
    await models.close();
    await store.close();
  });

  const open = (between: (run: Run) => Run = (run) => run) => {
    const { runner, clock } = shared;
    const execute: Run = (...args) => runner.execute(...args);
    const told = { load: runner.load, execute: between(execute) as CommandRunner['execute'] };
    const { find } = audit(models);
    const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const grants = createAuditGrants({ store, runner: told, find, clock, rest, logger });
    const change = async (id: string, command: AuditGrantCommand): Promise<void> => {
      commands += 1;
      const { outcome } = await runner.execute(auditGrantAggregate, id, command, fakeContext(`c${commands}`));
      expect(outcome).to.equal('accepted');
      await followed(models, store);
    };
    const give = (id: string, tenants: readonly string[] | 'all'): Promise<void> =>
      change(id, { type: 'GiveAuditGrant', at: AT, subjectId: 'olga', tenants, reason: 'audit' });
    const withdraw = (id: string): Promise<void> =>
      change(id, { type: 'WithdrawAuditGrant', at: AT, reason: 'over' });
    return { grants, give, withdraw };
  };
  type Run = (...args: Parameters<CommandRunner['execute']>) => ReturnType<CommandRunner['execute']>;

  const history = async (tenant: string): Promise<string[]> => {
    const types: string[] = [];
    for await (const { stream, type, metadata } of store.readAll({ limit: 1_000 }))
      if (stream.startsWith('auditGrantNotice-') && metadata['tenant'] === tenant) types.push(type);
    return types;
  };

  it('end in the history of a tenant, also when they are withdrawn while it is told that they were given', async () => {
    let withdrawn = false;
    const first = open((run) => async (...args) => {
      if (!withdrawn) {
        withdrawn = true;
        // Somebody else finds a tenant that was told of nothing, and tells it of no end.
        const other = open();
        await other.withdraw('g1');
        await other.grants.tell('g1');
        expect(await history('t1')).to.deep.equal([]);
      }
      return run(...args);
    });
    await first.give('g1', ['t1']);
    expect(await first.grants.reachOf('olga')).to.deep.equal({ all: false, tenants: [] });
    expect(await history('t1')).to.deep.equal(['AuditGrantNoticed', 'AuditGrantEndNoticed']);
  });

  it('are left out, and logged, where a tenant cannot be told: others still count', async () => {
    let failing = true;
    const { grants, give } = open((run) => (aggregate, id, ...rest) => {
      if (failing && id === 'g1.t1') return Promise.reject(new Error('no room'));
      return run(aggregate, id, ...rest);
    });
    await give('g1', ['t1', 't3']);
    await give('g2', ['t2']);
    expect(await grants.reachOf('olga')).to.deep.equal({ all: false, tenants: ['t2'] });
    expect(logger.lines).to.have.length(1);
    expect(logger.lines[0]?.level).to.equal('warn');
    expect(logger.lines[0]?.fields).to.include({ grant: 'g1' });
    expect((await grants.list()).map(({ id }) => id)).to.deep.equal(['g1', 'g2']);
    // Who gives one learns of it.
    expect(String(await grants.tell('g1').catch((error: unknown) => error))).to.equal('Error: no room');
    failing = false;
    expect(await grants.reachOf('olga')).to.deep.equal({ all: false, tenants: ['t1', 't3', 't2'] });
    expect(await history('t1')).to.deep.equal(['AuditGrantNoticed']);
  });

  it('are not left out where the caller has gone', async () => {
    const { grants, give } = open();
    await give('g1', ['t1']);
    const gone = new AbortController();
    gone.abort(new Error('gone'));
    for (const ask of [() => grants.reachOf('olga', gone.signal), () => grants.list(gone.signal)])
      expect(String(await ask().catch((error: unknown) => error))).to.equal('Error: gone');
    expect(logger.lines).to.deep.equal([]);
  });
});
