import { expect } from 'chai';
import { createErasures } from '../../../src/app/audit/erasure.ts';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import { retentionAggregate } from '../../../src/domain/kinds.ts';
import { RETENTION_ID } from '../../../src/domain/audit/retention.ts';
import { resourcesView } from '../../../src/projections/resources/resources-view.ts';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { revealing } from '../../../src/domain/personal.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import { startTestService } from '../../support/http/service.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };

describe('erasure of a person', () => {
  let service: Awaited<ReturnType<typeof startTestService>>;
  let admin: string;
  beforeEach(async () => {
    service = await startTestService();
    admin = await service.token({ user: 'root', admin: true });
    await call('POST', '/api/private/v1/tenants', { id: 'acme', metadata: { name: 'acme' } });
  });
  afterEach(() => service.close());

  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${service.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, never> };
  };
  const admit = async (name: string): Promise<string> => {
    const made = await call('POST', '/api/private/v1/users', {
      metadata: { name, tenant: 'acme', annotations: { team: `team of ${name}` } },
      spec: { username: name, email: `${name}@acme.example` },
    });
    expect(made.status, JSON.stringify(made.body)).to.be.oneOf([200, 201]);
    return (made.body as unknown as { id: string }).id;
  };
  const erasures = () =>
    createErasures({ runner: service.runner, keys: service.people, clock: systemClock(), logger: silent });
  const erase = async (subjectId: string, commandId = '0193a1b2-0000-7000-8000-00000000000a') => {
    const outcome = await erasures().erase(
      { subjectId, tenant: 'acme', reason: 'asked for' },
      fakeContext(commandId, { tenant: 'acme' }),
    );
    const position = outcome.loaded.position ?? '';
    await service.models.waitFor('resources', position, { timeoutMs: 5_000 });
    return outcome;
  };
  const changesOf = (id: string) =>
    service.models.changes
      .after({ position: '', n: 0 }, { rows: 1_000, characters: 1e9 })
      .filter((change) => change.id === id)
      .map(({ document }) => document);

  it('shows the fields as erased, in the object, in every change of it, in lists; others stay', async () => {
    const alice = await admit('alice');
    const bob = await admit('bob');
    await call('PATCH', `/api/private/v1/users/${alice}`, { spec: { email: 'new@acme.example' } });
    expect(changesOf(alice).join()).to.include('alice@acme.example').and.to.include('new@acme.example');

    expect((await erase(alice)).outcome).to.equal('accepted');

    const shown = await call('GET', `/api/private/v1/users/${alice}`);
    expect(shown.body).to.deep.include({ id: alice });
    expect(JSON.stringify(shown.body)).not.to.match(/alice|new@acme/);
    expect(shown.body['spec']).to.deep.include({ username: 'erased', email: 'erased' });
    expect(shown.body['metadata']).to.deep.include({ name: 'erased', annotations: { team: 'erased' } });
    expect(changesOf(alice), 'changes').to.have.length.greaterThan(1);
    expect(changesOf(alice).join()).not.to.match(/alice@|new@acme|team of alice/);
    const found = await call(
      'GET',
      `/api/private/v1/users?filter=${encodeURIComponent("this.spec.username == 'alice'")}`,
    );
    expect(JSON.stringify(found.body), 'a filter').not.to.include(alice);
    const other = await call('GET', `/api/private/v1/users/${bob}`);
    expect(other.body['spec']).to.deep.include({ username: 'bob', email: 'bob@acme.example' });
  });

  it('leaves the read model as one that is built now', async () => {
    const alice = await admit('alice');
    await admit('bob');
    await erase(alice);
    const codec = createEventCodec(eventTypes);
    const rebuilt = await openReadModels({
      dir: undefined,
      views: [
        resourcesView({ kinds: kinds.map((kind) => revealing(kind, { open: service.people.open })), codec }),
      ],
      source: { kind: 'inline', reader: service.store },
    });
    const position = (await service.store.lastPosition()) ?? '';
    for (const models of [service.models, rebuilt])
      expect(await models.waitFor('resources', position, { timeoutMs: 5_000 })).to.equal(true);
    expect(await rebuilt.digest('resources')).to.deep.equal(await service.models.digest('resources'));
    await rebuilt.close();
  });

  it('is refused while a hold keeps the data, and nothing is destroyed', async () => {
    const alice = await admit('alice');
    const hold = {
      type: 'PlaceLegalHold',
      at: '2026-11-21T12:00:00.000Z',
      holdId: 'case-1',
      reason: 'x',
    } as const;
    await erasures().hold({ ...hold, scope: { kind: 'tenant', id: 'acme' } }, fakeContext('c-hold'));
    const refused = await erase(alice);
    expect(refused.outcome === 'rejected' && refused.rejection.code).to.equal('LEGAL_HOLD');
    const shown = await call('GET', `/api/private/v1/users/${alice}`);
    expect(shown.body['spec']).to.deep.include({ username: 'alice' });
  });

  it('is completed after a crash between its beginning and the key', async () => {
    const alice = await admit('alice');
    await service.runner.execute(
      retentionAggregate,
      RETENTION_ID,
      {
        type: 'BeginErasure',
        at: '2026-11-21T12:00:00.000Z',
        hasKey: true,
        erasureId: '0193a1b2-0000-7000-8000-00000000000b',
        subjectId: alice,
        tenant: 'acme',
        reason: 'asked for',
      },
      fakeContext('0193a1b2-0000-7000-8000-00000000000b', { tenant: 'acme' }),
    );
    expect(await erasures().finish()).to.equal(1);
    expect(await erasures().finish()).to.equal(0);
    await service.models.waitFor('resources', (await service.store.lastPosition()) ?? '', {
      timeoutMs: 5_000,
    });
    const shown = await call('GET', `/api/private/v1/users/${alice}`);
    expect(shown.body['spec']).to.deep.include({ username: 'erased' });
  });
});
