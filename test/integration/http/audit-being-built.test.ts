import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { createStartGate, type StartGate } from '../../../src/composition/start-gate.ts';
import { AUDIT, reasonOf } from '../../support/audit/stage.ts';
import { eventually } from '../../support/eventually.ts';
import { createFakeTimers } from '../../support/commands/fake-incarnation.ts';
import { callerOf, PRIVATE, startTestService } from '../../support/http/service.ts';

/** After an upgrade that makes it anew, the view begins with nothing: an auditor would read that as "nothing happened". */
describe('audit API: a view that is being built', () => {
  it('answers 503 and when to come back, until it shows all that was recorded before the start', async () => {
    const log = createMemoryEventStore();
    const before = await startTestService({
      store: { ...log, close: async () => undefined },
      audit: { signs: false },
    });
    const root = callerOf(before, await before.token({ user: 'root', admin: true }));
    expect((await root('POST', `${PRIVATE}/host_types`, { id: 'h1' })).status).to.equal(200);
    let first = '';
    for await (const { id } of log.readStream('hostType-h1', { from: 0 })) first ||= id;
    expect(first).to.not.equal('');
    await before.close();

    const held = Promise.withResolvers<void>();
    const slow: EventStore = {
      ...log,
      async *subscribe(options) {
        await held.promise;
        yield* log.subscribe(options);
      },
    };
    const timers = createFakeTimers();
    const ended = new AbortController();
    const { signal } = ended;
    let gate: StartGate | undefined;
    const service = await startTestService({
      store: slow,
      audit: { signs: false },
      guard: (readModels, authenticate) => {
        gate = createStartGate({ system: { readModels }, store: log, timers, signal, hasAudit: true });
        return gate.guard(authenticate);
      },
    });
    try {
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      /** Nobody waits in earnest: what a request waits for is over at once. */
      const told = async (path: string) => {
        let isOver = false;
        const reply = admin('GET', `${AUDIT}/${path}`).finally(() => (isOver = true));
        await eventually(path, () => {
          timers.fire();
          return isOver;
        });
        return reply;
      };
      const paths = [
        'events',
        'resources/hostType/h1/events',
        'resources/hostType/h1',
        'events/x/proof',
        'exports',
      ];
      for (const path of paths) {
        const reply = await told(path);
        expect([reasonOf(reply), reply.headers.get('retry-after')], path).to.deep.equal([
          '503 STARTING',
          '2',
        ]);
      }
      expect((await told('events')).text).to.include(
        '(resources, audit) has not applied all that was recorded',
      );
      expect(gate?.isBuilding('audit')).to.equal(true);
      held.resolve();
      await eventually('built', () => gate?.isBuilding('audit') === false && !gate.isBuilding('resources'));
      const { status, json, text } = await admin('GET', `${AUDIT}/resources/hostType/h1/events`);
      expect(status, text).to.equal(200);
      expect((json['items'] as unknown as { id: string }[]).map(({ id }) => id)).to.include(first);
    } finally {
      held.resolve();
      ended.abort();
      await service.close();
    }
  });
});
