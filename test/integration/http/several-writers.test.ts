import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import {
  callerOf,
  PRIVATE,
  startTestService,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';

/** Locks and keys of callers on a log with other writers, where references and deletions are announced first. */
describe('references on a log with several writers', () => {
  let service: TestService;
  let admin: Caller;
  const TEMPLATES = `${PRIVATE}/cluster_templates`;
  const template = (id: string, hostType: string): object => ({
    id,
    title: 'T',
    node_sets: { workers: { host_type: { id: hostType }, size: 1 } },
  });
  const referTo = (hostType: string): object => ({
    node_sets: { workers: { host_type: { id: hostType }, size: 1 } },
  });

  beforeEach(async () => {
    service = await startTestService({ store: createMemoryEventStore({ singleWriter: false }) });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    for (const id of ['one', 'two', 'three'])
      expect((await admin('POST', `${PRIVATE}/host_types`, { id, title: id })).status).to.equal(200);
  });
  afterEach(() => service.close());

  const typesOf = async (stream: string): Promise<string[]> => {
    const types: string[] = [];
    for await (const { type } of service.store.readStream(stream)) types.push(type);
    return types;
  };

  it('If-Match and lock mean the document, whatever was announced', async () => {
    const made = await admin('POST', TEMPLATES, template('t', 'one'));
    expect(made.status, made.text).to.equal(200);
    const first = made.headers.get('etag') ?? '';
    const changed = await admin('PATCH', `${TEMPLATES}/t`, referTo('two'), { 'if-match': first });
    expect(changed.status, changed.text).to.equal(200);
    expect(changed.json['metadata']).to.include({ version: 1 });
    const second = changed.headers.get('etag') ?? '';
    expect((await admin('PATCH', `${TEMPLATES}/t`, referTo('three'), { 'if-match': first })).status).to.equal(
      412,
    );
    const last = await admin('PATCH', `${TEMPLATES}/t`, referTo('three'), { 'if-match': second });
    expect(last.status, last.text).to.equal(200);
    expect((await admin('GET', `${TEMPLATES}/t`)).headers.get('etag')).to.equal(last.headers.get('etag'));
    expect(await typesOf('clusterTemplate-t')).to.deep.equal([
      'ReferencesAnnounced',
      'ClusterTemplatePublished',
      'ReferencesAnnounced',
      'ClusterTemplateRevised',
      'ReferencesAnnounced',
      'ClusterTemplateRevised',
    ]);
  });

  it('If-Match of a deletion means the object before it was announced; what is in use stays as it was', async () => {
    await admin('POST', TEMPLATES, template('t', 'one'));
    const { headers } = await admin('GET', `${PRIVATE}/host_types/one`);
    const refused = await admin('DELETE', `${PRIVATE}/host_types/one`);
    expect(refused.json['message'], refused.text).to.match(/in use by at least one cluster template/);
    expect((await admin('GET', `${PRIVATE}/host_types/one`)).headers.get('etag')).to.equal(
      headers.get('etag'),
    );
    await admin('DELETE', `${TEMPLATES}/t`);
    const etag = headers.get('etag') ?? '';
    const removed = await admin('DELETE', `${PRIVATE}/host_types/one`, undefined, { 'if-match': etag });
    expect(removed.status, removed.text).to.equal(200);
    expect(await typesOf('hostType-one')).to.deep.equal([
      'HostTypeDefined',
      'DeletionAnnounced',
      'HostTypeRetired',
    ]);
  });

  it('a key answers the same when it is repeated, and changes without new references announce nothing', async () => {
    const key = { 'idempotency-key': '"k"' };
    const made = await admin('POST', TEMPLATES, template('t', 'one'), key);
    const again = await admin('POST', TEMPLATES, template('t', 'one'), key);
    expect([again.status, again.text]).to.deep.equal([200, made.text]);
    await admin('PATCH', `${TEMPLATES}/t`, { title: 'U' });
    expect(await typesOf('clusterTemplate-t')).to.deep.equal([
      'ReferencesAnnounced',
      'ClusterTemplatePublished',
      'ClusterTemplateRevised',
    ]);
    const gone = { 'idempotency-key': '"d"' };
    for (let times = 0; times < 2; times += 1)
      expect((await admin('DELETE', `${TEMPLATES}/t`, undefined, gone)).status).to.equal(200);
  });
});
