import { expect } from 'chai';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createErasures } from '../../../src/app/audit/erasure.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { revealing } from '../../../src/domain/personal.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { resourcesView } from '../../../src/projections/resources/resources-view.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import { startTestService } from '../../support/http/service.ts';
import { silentLogger } from '../../support/loggers.ts';

/** A read model on a disk, while somebody is erased: what its files hold, not what it shows. */
describe('files of the read model after an erasure', () => {
  let service: Awaited<ReturnType<typeof startTestService>>;
  let directory: string;
  let models: ReadModels;
  let alice: string;

  const call = async (path: string, body: object): Promise<{ id: string }> => {
    const bearer = await service.token({ user: 'root', admin: true });
    const answer = await fetch(`${service.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(answer.status).to.be.oneOf([200, 201]);
    return (await answer.json()) as { id: string };
  };
  const caughtUp = async (): Promise<void> => {
    const position = (await service.store.lastPosition()) ?? '';
    expect(await models.waitFor('resources', position, { timeoutMs: 5000 })).to.equal(true);
  };
  const erase = async (): Promise<void> => {
    const erasures = createErasures({
      runner: service.runner,
      keys: service.people,
      clock: systemClock(),
      logger: silentLogger,
    });
    const context = fakeContext('0193a1b2-0000-7000-8000-00000000000a', { tenant: 'acme' });
    const request = { subjectId: alice, tenant: 'acme', reason: 'asked for' };
    expect((await erasures.erase(request, context)).outcome).to.equal('accepted');
    await caughtUp();
  };
  /** Files that hold a text anywhere. */
  const filesWith = async (text: string): Promise<string[]> => {
    const found: string[] = [];
    for (const name of await readdir(directory))
      if ((await readFile(join(directory, name))).includes(text)) found.push(name);
    return found;
  };

  beforeEach(async () => {
    service = await startTestService();
    directory = await mkdtemp(join(tmpdir(), 'erased-'));
    const revealed = kinds.map((kind) => revealing(kind, { open: service.people.open }));
    models = await openReadModels({
      dir: directory,
      views: [resourcesView({ kinds: revealed, codec: createEventCodec(eventTypes) })],
      source: { kind: 'inline', reader: service.store },
    });
    await call('/api/private/v1/tenants', { id: 'acme', metadata: { name: 'acme' } });
    alice = (
      await call('/api/private/v1/users', {
        metadata: { name: 'alice', tenant: 'acme' },
        spec: { username: 'alice', email: 'alice@acme.example' },
      })
    ).id;
    await caughtUp();
  });
  afterEach(async () => {
    await models.close();
    await service.close();
    await rm(directory, { recursive: true, force: true });
  });

  it('hold nothing of it, the write-ahead log neither', async () => {
    expect(await filesWith('alice@acme.example')).not.to.have.length(0);
    await erase();
    expect(await filesWith('alice@acme.example')).to.deep.equal([]);
  });

  it('hold it no longer than somebody reads what was before', async () => {
    const [file = ''] = (await readdir(directory)).filter((name) => name.endsWith('.sqlite'));
    const reader = new DatabaseSync(join(directory, file), { readOnly: true });
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM _checkpoint').get();
    await erase();
    expect(await filesWith('alice@acme.example')).not.to.have.length(0);
    reader.exec('COMMIT');
    reader.close();
    await call('/api/private/v1/tenants', { id: 'globex', metadata: { name: 'globex' } });
    await caughtUp();
    expect(await filesWith('alice@acme.example')).to.deep.equal([]);
  });
});
