import { expect } from 'chai';
import { systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { findDangling } from '../../../src/composition/upkeep.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import { clusterTemplate, tenant } from '../../../src/domain/kinds.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import {
  PRIVATE,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';

/** What the service finds of references that two instances or a crash have left behind. */
describe('objects that refer to what is not there', () => {
  let service: TestService;
  let admin: Caller;
  beforeEach(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
  });
  afterEach(() => service.close());

  const sweep = () => findDangling(service.models.resources, systemTimers(), new AbortController().signal);
  const order = async (template: string, n: number): Promise<string> => {
    const reply = await admin('POST', `${PRIVATE}/clusters`, {
      metadata: { name: `c-${n}`, tenant: 't2' },
      spec: { template: { id: template } },
    });
    expect(reply.status, reply.text).to.equal(200);
    return textAt(reply.json, ...(reply.json['object'] === undefined ? ['id'] : ['object', 'id']));
  };
  /** A deletion that looks at nothing, as one of another instance that was a moment too early. */
  const removeBlindly = async (kind: typeof clusterTemplate, id: string): Promise<void> => {
    const command: DocumentCommand = { type: 'DeleteDocument', at: '2026-11-21T10:00:00.000Z' };
    const outcome = await service.commands.execute(kind, id, command, fakeContext(`remove ${id}`));
    expect(outcome.outcome).to.equal('accepted');
    const { position } = outcome.loaded;
    await service.models.waitFor('resources', position ?? '', { timeoutMs: 5_000 });
  };

  it('are none where all is well', async () => {
    await order('osac.templates.small', 1);
    expect(await sweep()).to.deep.equal({ total: 0, named: [] });
  });

  it('are found with what they miss, once for each target and tenant', async () => {
    const [first = ''] = [
      await order('osac.templates.small', 1),
      await order('osac.templates.small', 2),
    ].toSorted();
    await removeBlindly(clusterTemplate, 'osac.templates.small');
    await removeBlindly(tenant as unknown as typeof clusterTemplate, 't2');
    expect(await sweep()).to.deep.equal({
      total: 2,
      named: [
        { from: { kind: 'cluster', id: first }, to: { kind: 'clusterTemplate', id: 'osac.templates.small' } },
        { from: { kind: 'cluster', tenant: 't2' }, to: { kind: 'tenant', id: 't2' } },
      ],
    });
  });

  it('are all counted, and the first ten named', async () => {
    for (let n = 0; n < 12; n += 1) {
      const id = `osac.templates.t${n}`;
      const body = { id, node_sets: { w: { host_type: { id: 'fc430' }, size: 1 } } };
      expect((await admin('POST', `${PRIVATE}/cluster_templates`, body)).status).to.equal(200);
      await order(id, n);
      await removeBlindly(clusterTemplate, id);
    }
    const { total, named } = await sweep();
    expect([total, named.length]).to.deep.equal([12, 10]);
  });
});
