import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createStartGate } from '../../../src/composition/start-gate.ts';
import { ApiError, errorHeaders } from '../../../src/http/errors.ts';
import type { Principal } from '../../../src/http/osac/principal.ts';
import { createFakeTimers } from '../../support/commands/fake-incarnation.ts';

const CALLER = { userName: 'alice' } as Principal;
const RESOURCES = [
  '/osac.public.v1.Clusters/List',
  '/osac.private.v1.Hubs/Get',
  '/osac.public.v1.Clusters/Create',
];
const TIMELINE = [
  '/osac.public.v1.Clusters/GetTimeline',
  '/ledger.v1/orders',
  '/ledger.v1/orders/{id}',
  '/ledger.v1/orders/{id}/retry',
  '/ledger.v1/clusters/{id}',
];
const USAGE = ['/ledger.v1/usage'];
const AUDIT = [
  '/audit.v1/events',
  '/audit.v1/events/{id}',
  '/audit.v1/events/{id}/proof',
  '/audit.v1/resources/{kind}/{id}/events',
  '/audit.v1/resources/{kind}/{id}',
  '/audit.v1/consistency',
  '/audit.v1/tile/{path*}',
  '/audit.v1/exports',
  '/audit.v1/erasures',
];
/** Heads are read from the log. */
const HEADS = ['/audit.v1/checkpoint', '/audit.v1/checkpoints', '/audit.v1/trust.json'];
const ALWAYS = ['/ledger.v1/projections', '/ledger.v1/events', '/ledger.v1/store'];

/** Read models that are built when the spec says so, over a log that ends at position 5. */
const starting = ({ hasAudit = true } = {}) => {
  const done: Record<string, (reached: boolean) => void> = {};
  const timers = createFakeTimers();
  const store = createMemoryEventStore();
  const gate = createStartGate({
    system: {
      readModels: {
        waitFor: (view: string) => new Promise<boolean>((resolve) => (done[view] = resolve)),
      } as never,
    },
    store: { ...store, lastPosition: async () => '5' },
    timers,
    signal: new AbortController().signal,
    hasAudit,
  });
  const authenticate = gate.guard(async () => CALLER);
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  /** What becomes of a call once its wait is over. */
  const outcome = async (method: string): Promise<string> => {
    const answer = Promise.resolve(authenticate('Bearer x', method)).then(
      () => 'passed',
      (error: unknown) =>
        error instanceof ApiError
          ? `${error.status} ${error.reason} ${errorHeaders(error)['retry-after'] ?? ''}`
          : String(error),
    );
    await settle();
    timers.fire();
    return answer;
  };
  const finish = async (view: string): Promise<void> => {
    await settle();
    done[view]?.(true);
    await settle();
  };
  return { gate, outcome, finish };
};

describe('start gate', () => {
  it('answers 503 with Retry-After for what is read from read models that are not built yet', async () => {
    const { gate, outcome, finish } = starting();
    for (const method of [...RESOURCES, ...TIMELINE, ...USAGE, ...AUDIT, ...HEADS])
      expect(await outcome(method), method).to.equal('503 STARTING 2');
    for (const method of ALWAYS) expect(await outcome(method), method).to.equal('passed');
    await finish('resources');
    await gate.passed;
    for (const method of RESOURCES) expect(await outcome(method), method).to.equal('passed');
    for (const method of TIMELINE) expect(await outcome(method), method).to.equal('503 STARTING 2');
    await finish('timeline');
    for (const method of [...RESOURCES, ...TIMELINE, ...ALWAYS])
      expect(await outcome(method), method).to.equal('passed');
    for (const method of USAGE) expect(await outcome(method), method).to.equal('503 STARTING 2');
    await finish('usage');
    for (const method of [...RESOURCES, ...TIMELINE, ...USAGE, ...HEADS, ...ALWAYS])
      expect(await outcome(method), method).to.equal('passed');
    for (const method of AUDIT) expect(await outcome(method), method).to.equal('503 STARTING 2');
    expect(['resources', 'usage', 'audit'].map(gate.isBuilding)).to.deep.equal([false, false, true]);
    await finish('audit');
    for (const method of AUDIT) expect(await outcome(method), method).to.equal('passed');
    expect(gate.isBuilding('audit')).to.equal(false);
  });

  it('has nobody wait for a read model that an instance without auditor does not have', async () => {
    const { gate, outcome, finish } = starting({ hasAudit: false });
    for (const view of ['resources', 'timeline', 'usage']) await finish(view);
    for (const method of [...AUDIT, ...HEADS]) expect(await outcome(method), method).to.equal('passed');
    expect(gate.isBuilding('audit')).to.equal(false);
  });

  it('lets a call through that waited until they were built', async () => {
    const { gate, finish } = starting();
    const waiting = Promise.resolve(
      gate.guard(async () => CALLER)('Bearer x', '/osac.public.v1.Clusters/List'),
    );
    await finish('resources');
    expect(await waiting).to.equal(CALLER);
  });
});
