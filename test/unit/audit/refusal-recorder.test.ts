import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createMemoryKeyStore } from '../../../src/adapters/keys/memory-key-store.ts';
import { createDayJournal } from '../../../src/app/audit/day-journal.ts';
import { createKnownIds } from '../../../src/app/audit/known-ids.ts';
import { createRefusalRecorder } from '../../../src/app/audit/refusal-recorder.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import type { Encrypted, EventMetadata } from '../../../src/app/log/metadata.ts';
import type { RejectionRecord } from '../../../src/app/ports.ts';
import { createPersonalMetadata } from '../../../src/app/tenancy/subjects.ts';
import { createRequestHash } from '../../../src/app/commands/command.ts';
import { auditEventTypes } from '../../../src/domain/audit/event-types.ts';
import { systemIds } from '../../../src/adapters/system/system-ports.ts';
import { collect } from '../../support/commands/fake-context.ts';
import { manualTime } from '../../support/manual-time.ts';

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};

const missing = (): never => {
  throw new Error('nothing was recorded');
};

const ACTOR = { subjectId: 'alice', roles: ['client'], authMethod: 'jwt', via: 'http' } as const;

const start = (store: EventStore = createMemoryEventStore()) => {
  const time = manualTime('2026-11-21T12:00:00.000Z');
  const keys = createMemoryKeyStore();
  const recorder = createRefusalRecorder({
    journal: createDayJournal(store),
    codec: createEventCodec(auditEventTypes),
    clock: time.clock,
    timers: time.timers,
    ids: systemIds(),
    instance: 'one',
    logger: silent,
    requestHash: createRequestHash(new Uint8Array(32)),
    conceal: keys.encrypt,
    knownIds: createKnownIds(store),
    personal: createPersonalMetadata({ keys }),
    perSubject: { atOnce: 3, perMinute: 1 },
    strangers: { atOnce: 2, perMinute: 1 },
  });
  const ending = new AbortController();
  const ended = recorder.run(ending.signal);
  const refuse = (more: Partial<RejectionRecord> = {}): void =>
    recorder.record({
      tenant: 'acme',
      subjectId: 'alice',
      command: '/osac.public.v1.Clusters/Create',
      outcome: 'rejected',
      code: 'NAME_TAKEN',
      message: "name 'my secret project' is taken",
      at: time.clock.now(),
      correlationId: 'call-1',
      ...(more.subjectId === '' ? {} : { actor: { ...ACTOR, subjectId: more.subjectId ?? 'alice' } }),
      ...more,
    });
  const streams = async (): Promise<Record<string, readonly string[]>> => {
    const found: Record<string, string[]> = {};
    for (const event of await collect(store.readAll({ limit: 1_000 })))
      (found[event.stream] ??= []).push(event.type);
    return found;
  };
  return {
    ...time,
    store,
    keys,
    recorder,
    refuse,
    streams,
    stop: async () => {
      ending.abort();
      await time.pass(0);
      await ended;
    },
  };
};

/** The first event of something of this tenant. */
const owned = (tenant: string) => ({
  id: systemIds().uuidv7(),
  type: 'ClusterOrdered',
  data: '{}',
  metadata: JSON.stringify({ tenant }),
});

describe('record of refusals', () => {
  it('is a stream per tenant and day; who and what are told, the words concealed, no value of the body', async () => {
    const { refuse, store, keys, pass, stop } = start();
    await store.append('cluster-c1', 'no_stream', [owned('acme')]);
    refuse({
      kind: 'cluster',
      resourceId: 'c1',
      traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      body: () => ({ metadata: { name: 'my secret project', labels: { s3cret: 'x' } }, spec: {} }),
      fields: () => ['metadata.name', 'metadata.labels', 'spec'],
    });
    await pass(1_000);
    const [event] = await collect(store.readStream('refusal-acme.2026-11-21'));
    expect(event?.type).to.equal('RequestRefused');
    expect(event?.data).to.deep.include({
      subjectId: 'alice',
      outcome: 'rejected',
      code: 'NAME_TAKEN',
      command: '/osac.public.v1.Clusters/Create',
      kind: 'cluster',
      resourceId: 'c1',
      fields: ['metadata.name', 'metadata.labels', 'spec'],
    });
    expect(event?.data['bodyHash']).to.match(/^[0-9a-f]{64}$/);
    expect(event?.metadata).to.deep.include({
      tenant: 'acme',
      correlationId: 'call-1',
      requestHash: event?.data['bodyHash'],
      schemaVersion: 1,
    });
    expect(event?.metadata['actor']).to.deep.include({
      subjectId: 'alice',
      roles: ['client'],
      authMethod: 'jwt',
    });
    const text = JSON.stringify(event);
    for (const concealed of ['my secret project', 's3cret']) expect(text).not.to.include(concealed);
    expect(await keys.decrypt(event?.data['message'] as Encrypted)).to.equal(
      "name 'my secret project' is taken",
    );
    await stop();
  });

  it('tells who called and from where as accepted calls do, and nobody can read it once the person is erased', async () => {
    const { refuse, store, keys, pass, stop } = start();
    const clear = {
      person: { userName: 'Alice A.', email: 'a@acme.example' },
      source: { ip: '203.0.113.7' },
    };
    refuse({ clear, ticket: 'CHG-1', project: 'p1' });
    await pass(1_000);
    const read = async () => {
      const [event] = await collect(store.readStream('refusal-acme.2026-11-21'));
      const { actor, source } = (event ?? missing()).metadata as unknown as EventMetadata;
      const sealed = [actor.personal, source, event?.data['message']] as unknown as Encrypted[];
      return { event, texts: await Promise.all(sealed.map(keys.decrypt)) };
    };
    const { event, texts } = await read();
    expect(event?.metadata).to.deep.include({ project: 'p1', ticket: 'CHG-1' });
    expect(event?.metadata['actor']).to.deep.include(ACTOR);
    expect(texts).to.deep.equal([
      '{"userName":"Alice A.","email":"a@acme.example"}',
      '{"ip":"203.0.113.7"}',
      "name 'my secret project' is taken",
    ]);
    expect(JSON.stringify(event)).not.to.match(/Alice A|203\.0|a@acme/);
    await keys.destroy('alice');
    expect((await read()).texts).to.deep.equal([undefined, undefined, undefined]);
    await stop();
  });

  it('tells an id in clear where it is made here, or of what is there in that history; any other may be a name', async () => {
    const { refuse, store, keys, pass, stop } = start();
    await store.append('cluster-mine', 'no_stream', [owned('acme')]);
    await store.append('cluster-theirs', 'no_stream', [owned('globex')]);
    await store.append('clusterTemplate-small', 'no_stream', [owned('shared')]);
    const uuid = '01a1fdbf-853f-7699-b03b-202e1bbb7ff3';
    const asked = [
      ['cluster', 'mine'],
      ['cluster', uuid],
      ['clusterTemplate', 'small'],
      ['cluster', 'theirs'],
      ['cluster', 'bob@acme.example'],
    ] as const;
    for (const [i, [kind, resourceId]] of asked.entries()) {
      refuse({ kind, resourceId, subjectId: `s${i}` });
      await pass(1_000);
    }
    refuse({ kind: 'cluster', resourceId: 'bob@acme.example', tenant: '', subjectId: '' });
    refuse({ kind: 'cluster', resourceId: 'theirs', tenant: '', subjectId: 'operator' });
    await pass(1_000);
    const told = [];
    for (const history of ['acme', '_'])
      for (const { data } of await collect(store.readStream(`refusal-${history}.2026-11-21`)))
        told.push([
          data['resourceId'],
          data['named'] && (await keys.decrypt(data['named'] as unknown as Encrypted)),
        ]);
    expect(told).to.deep.equal([
      ['mine', undefined],
      [uuid, undefined],
      ['small', undefined],
      [undefined, 'theirs'],
      [undefined, 'bob@acme.example'],
      [undefined, undefined],
      ['theirs', undefined],
    ]);
    await keys.destroy('s4');
    const bob = (await collect(store.readStream('refusal-acme.2026-11-21'))).at(-1)?.data['named'];
    expect(await keys.decrypt(bob as unknown as Encrypted)).to.equal(undefined);
    await stop();
  });

  it('conceals an id of which the log cannot be asked', async () => {
    const whole = createMemoryEventStore();
    await whole.append('cluster-mine', 'no_stream', [owned('acme')]);
    const { refuse, store, pass, stop } = start({
      ...whole,
      readStream: (stream, options) => {
        if (stream.startsWith('cluster-')) throw new StoreUnavailable('down');
        return whole.readStream(stream, options);
      },
    });
    refuse({ kind: 'cluster', resourceId: 'mine' });
    await pass(1_000);
    const [event] = await collect(store.readStream('refusal-acme.2026-11-21'));
    expect(event?.data).to.have.property('named');
    expect(event?.data).not.to.have.property('resourceId');
    await stop();
  });

  it('of a call before an erasure cannot be read after it, though it is written later', async () => {
    const { refuse, store, keys, pass, stop } = start();
    refuse({ clear: { person: { userName: 'Alice A.' }, source: {} } });
    await new Promise((resolve) => setImmediate(resolve));
    await keys.destroy('alice');
    await pass(1_000);
    const [event] = await collect(store.readStream('refusal-acme.2026-11-21'));
    const { actor } = (event ?? missing()).metadata as unknown as EventMetadata;
    expect(await keys.has('alice'), 'no new key').to.equal(false);
    expect(await keys.decrypt(actor.personal as Encrypted)).to.equal(undefined);
    expect(await keys.decrypt(event?.data['message'] as Encrypted)).to.equal(undefined);
    await stop();
  });

  it('holds the class of the refusal in clear, and what a stranger was told where that repeats nothing', async () => {
    const { refuse, store, pass, stop } = start();
    refuse({ error: 'ALREADY_EXISTS' });
    const stranger = { tenant: '', subjectId: '', code: 'NO_TOKEN' };
    refuse({ ...stranger, error: 'UNAUTHENTICATED', message: 'token expired', plain: true });
    refuse({ ...stranger, error: 'UNAUTHENTICATED', message: 'scheme my-password is not supported' });
    await pass(1_000);
    const data = [];
    for (const day of ['acme', '_'])
      data.push(...(await collect(store.readStream(`refusal-${day}.2026-11-21`))).map((each) => each.data));
    expect(data.map(({ error, told }) => [error, told])).to.deep.equal([
      ['ALREADY_EXISTS', undefined],
      ['UNAUTHENTICATED', 'token expired'],
      ['UNAUTHENTICATED', undefined],
    ]);
    expect(JSON.stringify(data)).not.to.include('my-password');
    await stop();
  });

  it('keeps tenants and days apart', async () => {
    const { refuse, pass, streams, stop } = start();
    refuse();
    refuse({ tenant: 'globex', subjectId: 'bob' });
    refuse({ subjectId: 'carol', at: '2026-11-22T00:00:00.000Z' });
    refuse({ tenant: '', subjectId: '', outcome: 'unauthenticated', code: 'NO_TOKEN' });
    await pass(1_000);
    expect(await streams()).to.deep.equal({
      'refusal-acme.2026-11-21': ['RequestRefused'],
      'refusal-globex.2026-11-21': ['RequestRefused'],
      'refusal-acme.2026-11-22': ['RequestRefused'],
      'refusal-_.2026-11-21': ['RequestRefused'],
    });
    await stop();
  });

  it('records so many of one caller, counts the rest, and says so once a minute', async () => {
    const { refuse, pass, store, stop } = start();
    for (let i = 0; i < 10; i += 1) refuse();
    refuse({ subjectId: 'bob' });
    await pass(1_000);
    const recorded = await collect(store.readStream('refusal-acme.2026-11-21'));
    expect(recorded.map(({ data }) => data['subjectId'])).to.deep.equal(['alice', 'alice', 'alice', 'bob']);
    await pass(60_000);
    const suppressed = (await collect(store.readStream('refusal-acme.2026-11-21'))).at(-1);
    expect(suppressed?.type).to.equal('RefusalsSuppressed');
    expect(suppressed?.data).to.deep.include({ subjectId: 'alice', count: 7 });
    expect(suppressed?.metadata['tenant']).to.equal('acme');
    expect(suppressed?.metadata['actor']).to.deep.equal(ACTOR);
    await pass(60_000);
    expect(await collect(store.readStream('refusal-acme.2026-11-21'))).to.have.length(5);
    refuse();
    await pass(1_000);
    expect(await collect(store.readStream('refusal-acme.2026-11-21')), 'a minute later').to.have.length(6);
    await stop();
  });

  it('counts for whom it was, and tells who acted', async () => {
    const { refuse, pass, store, stop } = start();
    const through = (subjectId: string) => ({ ...ACTOR, subjectId, onBehalfOf: 'alice' });
    for (const proxy of ['p1', 'p2', 'p3', 'p4', 'p4']) refuse({ subjectId: proxy, actor: through(proxy) });
    refuse({ subjectId: 'p4', actor: { ...ACTOR, subjectId: 'p4', onBehalfOf: 'bob' } });
    await pass(1_000);
    await stop();
    const events = await collect(store.readStream('refusal-acme.2026-11-21'));
    const refused = events.filter(({ type }) => type === 'RequestRefused');
    expect(refused.map(({ data }) => data['subjectId'])).to.deep.equal(['p1', 'p2', 'p3', 'p4']);
    expect(refused.at(-1)?.metadata['actor']).to.deep.include({ onBehalfOf: 'bob' });
    const [suppressed, ...more] = events.filter(({ type }) => type === 'RefusalsSuppressed');
    expect(more).to.deep.equal([]);
    expect(suppressed?.data).to.deep.include({ subjectId: 'p4', count: 2 });
    expect(suppressed?.metadata['actor']).to.deep.equal(through('p4'));
  });

  it('gives all who do not say who they are one allowance', async () => {
    const { refuse, pass, store, stop } = start();
    for (let i = 0; i < 5; i += 1)
      refuse({
        tenant: '',
        subjectId: '',
        outcome: 'unauthenticated',
        code: 'NO_TOKEN',
        message: `try ${i}`,
      });
    await pass(1_000);
    await stop();
    const events = await collect(store.readStream('refusal-_.2026-11-21'));
    expect(events.map(({ type }) => type)).to.deep.equal([
      'RequestRefused',
      'RequestRefused',
      'RefusalsSuppressed',
    ]);
    expect(events.at(-1)?.data).to.deep.include({ count: 3 });
    expect(events.at(-1)?.data).not.to.have.property('subjectId');
    expect(events[0]?.metadata['actor']).to.deep.include({ authMethod: 'anonymous' });
    expect(events[0]?.data, 'nobody could conceal it').not.to.have.property('message');
  });

  it('keeps what the store does not take, bounded, and writes it once the store answers', async () => {
    const store = createMemoryEventStore();
    let down = true;
    const flaky: EventStore = {
      ...store,
      append: (...call) => (down ? Promise.reject(new StoreUnavailable('down')) : store.append(...call)),
    };
    const { refuse, pass, recorder, streams, stop } = start(flaky);
    refuse();
    await pass(10_000);
    expect(recorder.waiting()).to.equal(1);
    down = false;
    await pass(1_000);
    expect(recorder.waiting()).to.equal(0);
    expect(await streams()).to.deep.equal({ 'refusal-acme.2026-11-21': ['RequestRefused'] });
    await stop();
  });

  it('writes what waits when it ends', async () => {
    const { refuse, streams, stop } = start();
    refuse();
    await stop();
    expect(await streams()).to.deep.equal({ 'refusal-acme.2026-11-21': ['RequestRefused'] });
  });
});
