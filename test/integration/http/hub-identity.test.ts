import { expect } from 'chai';
import { hub, KUBECONFIG_PATH } from '../../../src/domain/hubs/hub.resource.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { aggregateOf } from '../../../src/domain/kinds.ts';
import { commandContext } from '../../support/hubs/hub-fixture.ts';
import {
  PRIVATE,
  callerOf,
  startTestService,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';

const at = '2026-11-21T12:00:00.000Z';
const to = (cluster: string): string => Buffer.from(`kind: Config # to ${cluster}`).toString('base64');

describe('which cluster a hub is, over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  /** What was asked which cluster it leads to. */
  const asked: string[] = [];

  before(async () => {
    service = await startTestService({
      identify: async ({ id, namespace }, kubeconfig) => {
        const text = Buffer.from(kubeconfig).toString('utf8');
        asked.push(`${id} ${namespace} ${text}`);
        const cluster = text.slice('kind: Config # to '.length);
        return cluster === 'nobody' ? undefined : cluster;
      },
    });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
  });
  after(() => service.close());
  beforeEach(() => {
    asked.length = 0;
  });

  const register = async (id: string): Promise<void> => {
    const body = { id, metadata: { name: id }, spec: { namespace: 'osac-hub', kubeconfig: to('uid-1') } };
    expect((await admin('POST', `${PRIVATE}/hubs`, body)).status).to.equal(200);
  };
  const look = async (id: string, cluster: string): Promise<void> => {
    const aggregate = aggregateOf(hub);
    const { state } = await service.runner.load(aggregate, id);
    const version = 'secrets' in state ? state.secrets[KUBECONFIG_PATH]?.version : undefined;
    await service.runner.execute(
      aggregate,
      id,
      {
        type: 'ReportHubCheck',
        at,
        ...(version === undefined ? {} : { kubeconfig: version }),
        findings: { reachable: [], credentials: [], requirements: [], cluster },
      },
      commandContext(`look-${id}-${cluster}-${version ?? ''}`),
    );
  };
  const rotate = (id: string, cluster: string, more: JsonObject = {}, headers = {}) =>
    admin('PATCH', `${PRIVATE}/hubs/${id}`, { spec: { kubeconfig: to(cluster) }, ...more }, headers);
  const versionOf = async (id: string): Promise<unknown> => {
    const { state } = await service.runner.load(aggregateOf(hub), id);
    return 'secrets' in state ? state.secrets[KUBECONFIG_PATH]?.version : undefined;
  };

  it('credentials that lead to another cluster are refused, and the hub keeps those that it has', async () => {
    await register('hub-a');
    await look('hub-a', 'uid-1');
    const before = await versionOf('hub-a');
    const refused = await rotate('hub-a', 'uid-2');
    expect(refused.status).to.equal(400);
    expect(refused.text).to.include('uid-1').and.include('uid-2').and.include('--accept-cluster uid-2');
    expect(refused.text).to.not.include('kind: Config');
    expect(await versionOf('hub-a')).to.equal(before);
    expect(asked).to.deep.equal(['hub-a osac-hub kind: Config # to uid-2']);
  });

  it('are taken while no cluster is known of the hub, and when nobody can tell where they lead', async () => {
    await register('hub-b');
    expect((await rotate('hub-b', 'uid-2')).status).to.equal(200);
    expect(asked).to.deep.equal([]);
    await look('hub-b', 'uid-2');
    expect((await rotate('hub-b', 'nobody')).status).to.equal(200);
  });

  it('are asked for only when they change, and not by a dry run', async () => {
    await register('hub-c');
    await look('hub-c', 'uid-1');
    expect((await admin('PATCH', `${PRIVATE}/hubs/hub-c`, { spec: { zone: 'north' } })).status).to.equal(200);
    expect((await rotate('hub-c', 'uid-1')).status).to.equal(200);
    expect((await rotate('hub-c', 'uid-2', {}, { 'x-dry-run': 'true' })).status).to.equal(200);
    expect(asked).to.deep.equal([]);
  });

  it('of a hub that was rebuilt are taken when the change names the cluster, and those of no other', async () => {
    await register('hub-d');
    await look('hub-d', 'uid-1');
    const named = { metadata: { annotations: { 'fulfillment-ledger/cluster': 'uid-2' } } };
    expect((await rotate('hub-d', 'uid-3', named)).status).to.equal(400);
    expect((await rotate('hub-d', 'uid-2', named)).status).to.equal(200);
    await look('hub-d', 'uid-2');
    const { text } = await admin('GET', `${PRIVATE}/hubs/hub-d`);
    const conditions = listAt(objectAt(JSON.parse(text) as JsonObject, 'status'), 'conditions');
    const same = conditions.find((each) => stringAt(each, 'type') === 'SameCluster');
    expect(same).to.include({ status: 'CONDITION_STATUS_TRUE' });
    expect((await rotate('hub-d', 'uid-1')).status, 'the former one is another one now').to.equal(400);
  });
});
