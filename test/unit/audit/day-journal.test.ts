import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createDayJournal, dayStream } from '../../../src/app/audit/day-journal.ts';
import { OutcomeUnknown, type EventStore } from '../../../src/app/log/event-store.ts';
import { parseStreamName } from '../../../src/domain/stream-name.ts';
import { collect } from '../../support/commands/fake-context.ts';

describe('day journal', () => {
  const entry = (id: string) => ({ id, type: 'X', data: '{}', metadata: '{}' });
  const ID = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;

  it('names its streams by tenant and day: those of two tenants are never one', () => {
    const tenants = ['acme', '', 'a.b', 'tenant with spaces', 'acme.2026-11-21'];
    const names = tenants.map((tenant) => dayStream('refusal', tenant, '2026-11-21T01:00:00Z'));
    expect(new Set(names).size).to.equal(tenants.length);
    expect(names.map((name) => parseStreamName(name).id)).to.deep.equal(
      tenants.map((tenant) => `${tenant || '_'}.2026-11-21`),
    );
  });

  it('takes turns with other instances, each entry once', async () => {
    const store = createMemoryEventStore();
    const [one, two] = [createDayJournal(store), createDayJournal(store)];
    await one.append('refusal-acme.2026-11-21', [entry(ID(1))]);
    await two.append('refusal-acme.2026-11-21', [entry(ID(2)), entry(ID(3))]);
    await one.append('refusal-acme.2026-11-21', [entry(ID(4))]);
    const ids = (await collect(store.readStream('refusal-acme.2026-11-21'))).map(({ id }) => id);
    expect(ids).to.deep.equal([ID(1), ID(2), ID(3), ID(4)]);
  });

  it('recognises what it had stored when the answer was lost and others wrote meanwhile', async () => {
    const store = createMemoryEventStore();
    let lose = true;
    const losing: EventStore = {
      ...store,
      append: async (stream, expected, events, options) => {
        const appended = await store.append(stream, expected, events, options);
        if (!lose) return appended;
        lose = false;
        await store.append(stream, appended.revision, [entry(ID(9))]);
        throw new OutcomeUnknown(stream);
      },
    };
    const position = await createDayJournal(losing).append('refusal-acme.2026-11-21', [entry(ID(1))]);
    const events = await collect(store.readStream('refusal-acme.2026-11-21'));
    expect(events.map(({ id }) => id)).to.deep.equal([ID(1), ID(9)]);
    expect(position).to.equal(events[0]?.position);
  });

  it('gives up after several answers that were lost', async () => {
    const store: EventStore = {
      ...createMemoryEventStore(),
      append: (stream) => Promise.reject(new OutcomeUnknown(stream)),
    };
    const failed = await createDayJournal(store)
      .append('refusal-acme.2026-11-21', [entry(ID(1))])
      .catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(OutcomeUnknown);
  });
});
