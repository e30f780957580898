import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { checkAsync } from '../../support/property.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

type Answer = { readonly status: number; readonly text: string; readonly position: string };

/** Reads of the past: one object and lists, at a position or a time. */
describe('as_of', () => {
  let service: TestService;
  let admin: string;
  const start = async (options: Parameters<typeof startTestService>[0] = {}): Promise<void> => {
    service = await startTestService(options);
    admin = await service.token({ user: 'root', admin: true });
  };
  afterEach(() => service.close());

  const call = async (method: string, path: string, body?: object, token = admin): Promise<Answer> => {
    const answer = await fetch(`${service.url}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return {
      status: answer.status,
      text: await answer.text(),
      position: answer.headers.get('x-ledger-position') ?? '',
    };
  };
  const get = (path: string, asOf?: string, token?: string): Promise<Answer> =>
    call(
      'GET',
      asOf === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}as_of=${encodeURIComponent(asOf)}`,
      undefined,
      token,
    );
  const make = (id: string, description = ''): Promise<Answer> =>
    call('POST', '/private/v1/host_types', {
      id,
      metadata: { name: id, labels: { tier: 'a' } },
      title: id,
      description,
    });
  const messageOf = ({ text }: Answer): string => (JSON.parse(text) as { message: string }).message;

  it('shows an object and lists exactly as reads showed them at every position', async () => {
    await checkAsync(
      fc.asyncProperty(
        fc.array(
          fc.record({
            what: fc.constantFrom('make', 'change', 'label', 'remove'),
            id: fc.constantFrom('ht-one', 'ht-two', 'ht-three'),
            text: fc.string({ minLength: 1, maxLength: 5 }),
          }),
          { minLength: 1, maxLength: 12 },
        ),
        async (steps) => {
          await start();
          const moments: { position: string; shown: Map<string, string> }[] = [];
          const paths = [
            '/private/v1/host_types/ht-one',
            '/private/v1/host_types/ht-two',
            '/fulfillment/v1/host_types/ht-one',
            '/private/v1/host_types',
            '/fulfillment/v1/host_types?limit=2',
            `/private/v1/host_types?filter=${encodeURIComponent('this.metadata.labels["tier"] == "b"')}`,
            `/private/v1/host_types?order=${encodeURIComponent('metadata.name desc')}`,
          ];
          for (const { what, id, text } of steps) {
            const path = `/private/v1/host_types/${id}`;
            if (what === 'make') await make(id, text);
            else if (what === 'change') await call('PATCH', path, { description: text });
            else if (what === 'label') await call('PATCH', path, { metadata: { labels: { tier: 'b' } } });
            else await call('DELETE', path);
            // What was refused or changed nothing leaves things as they were.
            const last = await service.store.lastPosition();
            if (last === undefined) continue;
            const position = service.positions.format(last);
            const shown = new Map<string, string>();
            for (const each of paths) {
              const { status, text: body } = await get(each);
              // That it was deleted is told of the present, not of the past.
              shown.set(each, status === 404 ? '404' : `${status} ${body}`);
            }
            moments.push({ position, shown });
          }
          for (const { position, shown } of moments)
            for (const [path, before] of shown) {
              const { status, text } = await get(path, position);
              const now = status === 404 ? '404' : `${status} ${text}`;
              expect(now, `${path} at ${position}`).to.equal(before);
            }
          await service.close();
        },
      ),
      { numRuns: 12 },
    );
    await start();
  });

  it('takes a time: the last position whose running maximum of recorded time is not later', async () => {
    await start();
    const before = new Date(Date.now() - 60_000).toISOString();
    await make('ht-one', 'first');
    const [made] = [...(await eventsOf('hostType-ht-one'))];
    await until(made?.recordedAt ?? '');
    await call('PATCH', '/private/v1/host_types/ht-one', { description: 'second' });
    const path = '/private/v1/host_types/ht-one';
    expect((await get(path, before)).status, 'before it was').to.equal(404);
    expect((await get(path, made?.recordedAt)).text)
      .to.include('first')
      .and.not.to.include('second');
    expect((await get(path, new Date().toISOString())).text).to.include('second');
    expect((await get('/private/v1/host_types', '1999-01-01T00:00:00Z')).text).to.equal('{}');
  });

  it('refuses what is no moment, of another store, or in the future', async () => {
    await start();
    const { position } = await make('ht-one');
    for (const path of ['/private/v1/host_types/ht-one', '/private/v1/host_types']) {
      for (const bad of ['yesterday', '2026-13-45T00:00:00Z', '12', `${position}0`])
        expect((await get(path, bad)).status, `${path} ${bad}`).to.equal(400);
      expect(messageOf(await get(path, `other-store.${position.split('.').at(-1) ?? ''}`))).to.include(
        'another event store',
      );
      expect(messageOf(await get(path, '2999-01-01T00:00:00Z'))).to.include('in the future');
      expect(messageOf(await get(path, position.replace(/\d{4}$/, '9999')))).to.include('in the future');
    }
  });

  it('shows each tenant its own past only', async () => {
    await start();
    for (const id of ['acme', 'globex'])
      await call('POST', '/private/v1/tenants', { id, metadata: { name: id } });
    const alice = await service.token({ user: 'alice', tenants: ['acme'] });
    const bob = await service.token({ user: 'bob', tenants: ['globex'] });
    const value = Buffer.from('x').toString('base64');
    const made = await call(
      'POST',
      '/fulfillment/v1/secrets',
      { metadata: { name: 's' }, data: { k: value } },
      alice,
    );
    expect(made.status, made.text).to.equal(200);
    const { id } = JSON.parse(made.text) as { id: string };
    const path = `/fulfillment/v1/secrets/${id}`;
    expect((await get(path, made.position, alice)).status).to.equal(200);
    const foreign = await get(path, made.position, bob);
    const absent = await get('/fulfillment/v1/secrets/nothing-here', made.position, bob);
    expect(foreign.status).to.equal(404);
    expect(foreign.text.replace(id, 'nothing-here')).to.equal(absent.text);
    expect((await get('/fulfillment/v1/secrets', made.position, bob)).text).to.equal('{}');
    expect((await get('/fulfillment/v1/secrets', made.position, alice)).text).to.include(id);
  });

  it('tells lists only inside the retention of changes, single objects always', async () => {
    await start({ retentionDays: 0 });
    const first = await make('ht-one', 'first');
    await until(new Date().toISOString());
    const last = await make('ht-two', 'second');
    for (let i = 0; i < 4; i += 1) {
      await until(new Date().toISOString());
      await call('PATCH', '/private/v1/host_types/ht-two', { description: `again ${i}` });
    }
    expect(last.status).to.equal(200);
    const asked = await get('/private/v1/host_types', first.position);
    expect(asked.status).to.equal(400);
    expect(messageOf(asked)).to.include('older than lists reach back').and.include('ledgerctl audit export');
    expect(asked.text).to.include('"field":"as_of"');
    expect((await get('/private/v1/host_types/ht-one', first.position)).text).to.include('first');
  });

  it('folds what changes does not tell any more: an object of before the retention that changed later', async () => {
    let now = '2026-11-21T12:00:00.000Z';
    await start({ retentionDays: 0, store: createMemoryEventStore({ now: () => now }) });
    await make('ht-old', 'as it was');
    now = '2026-11-21T12:00:01.000Z';
    const { position } = await make('ht-new', 'new');
    expect(service.models.changes.prunedTo(), 'the creation of ht-old is not told any more').not.to.equal(
      undefined,
    );
    // At the same time, so that retention goes no further.
    await call('PATCH', '/private/v1/host_types/ht-old', { description: 'as it is' });
    const asked = await get('/private/v1/host_types', position);
    expect(asked.status, asked.text).to.equal(200);
    expect(asked.text).to.include('as it was').and.include('ht-new').and.not.to.include('as it is');
    expect(JSON.parse(asked.text)).to.include({ total: 2 });
    const [before, after] = (JSON.parse(asked.text) as { items: { id: string }[] }).items.map(({ id }) => id);
    expect([before, after], 'in the order of creation').to.deep.equal(['ht-old', 'ht-new']);
  });

  it('lists nothing by an event that was changed in the store, where it is folded for the list', async () => {
    let now = '2026-11-21T12:00:00.000Z';
    let isForged = false;
    const store = createMemoryEventStore({ now: () => now });
    const readStream: EventStore['readStream'] = async function* (stream, options) {
      for await (const event of store.readStream(stream, options)) {
        const { data } = event;
        yield isForged && stream === 'hostType-ht-old'
          ? { ...event, data: { ...data, name: 'fake' } }
          : event;
      }
    };
    await start({ retentionDays: 0, store: { ...store, readStream } });
    await make('ht-old', 'as it was');
    now = '2026-11-21T12:00:01.000Z';
    const { position } = await make('ht-new', 'new');
    await call('PATCH', '/private/v1/host_types/ht-old', { description: 'as it is' });
    const last = (await store.lastPosition()) ?? '';
    expect(await service.models.waitFor('audit', last, { timeoutMs: 5_000 })).to.equal(true);
    expect((await get('/private/v1/host_types', position)).text).to.include('as it was');
    isForged = true;
    const asked = await get('/private/v1/host_types', position);
    expect([asked.status, asked.text.includes('EVENT_CHANGED')], asked.text).to.deep.equal([500, true]);
    expect(service.suspected).to.deep.equal(['hostType-ht-old@0']);
  });

  const eventsOf = async (stream: string) => {
    const events = [];
    for await (const event of service.store.readStream(stream)) events.push(event);
    return events;
  };
  /** Returns once the clock shows a later millisecond. */
  const until = async (time: string): Promise<void> => {
    while (new Date().toISOString() <= time) await new Promise((resolve) => setImmediate(resolve));
  };
});
