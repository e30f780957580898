import { expect } from 'chai';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import { autoObjects, boundObjects } from '../../../../src/domain/clusters/endpoints.ts';
import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import { isStoredCluster, type ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { createOrderRun, done, failed, placedOn, refused } from './order-run.ts';
import { change, deletionRequested, finalizers, HUB, ID, onHub, order, ordered, time } from './samples.ts';

const { given } = specify(clusterDecider);
const at = time(30);
const holder = (id: string) => ({ kind: 'externalIpAttachment', id });
const attach = (id: string, part: string, by?: string): ClusterCommand => ({
  type: 'AttachTo',
  at,
  holder: holder(id),
  part,
  ...(by === undefined ? {} : { by }),
});
const detach = (id: string, generation: number): ClusterCommand => ({
  type: 'DetachFrom',
  at,
  holder: holder(id),
  generation,
});
const attached = (
  id: string,
  endpoint: 'API' | 'INGRESS',
  generation: number,
  by?: string,
): ClusterEvent => ({
  type: 'ClusterEndpointAttached',
  data: { at, endpoint, holder: holder(id), generation, ...(by === undefined ? {} : { by }) },
});
const detached = (id: string, endpoint: 'API' | 'INGRESS', generation: number): ClusterEvent => ({
  type: 'ClusterEndpointDetached',
  data: { at, endpoint, holder: holder(id), generation },
});
const requested: ClusterEvent = { type: 'ClusterDeletionRequested', data: { at } };
const gone: ClusterEvent = { type: 'ClusterDeleted', data: { at, how: 'not-dispatched' } };
const EXTERNAL_IPS = {
  pool: { id: 'p1', name: 'public' },
  hub: HUB,
  ids: {
    API: { ip: '11111111-api', attachment: 'a-api' },
    INGRESS: { ip: '22222222-ing', attachment: 'a-ing' },
  },
};

describe('endpoints of a cluster', () => {
  it('have one external IP each', () => {
    given(order)
      .when(attach('a', 'API', 'c1'))
      .thenEvents(attached('a', 'API', 1, 'c1'));
    given(order, attached('a', 'API', 1))
      .when(attach('b', 'INGRESS'))
      .thenEvents(attached('b', 'INGRESS', 2));
    given(order, attached('a', 'API', 1))
      .when(attach('a', 'API'))
      .thenNothing();
    given(order, attached('a', 'API', 1))
      .when(attach('b', 'API'))
      .thenRejected('ALREADY_EXISTS', {
        kind: 'already-exists',
        message: "cluster 'my-cluster' already has an external IP at endpoint API",
      });
    given(order).when(attach('a', 'SSH')).thenRejected('NO_SUCH_ENDPOINT');
  });
  it('are free again once it was given back, by the claim that it was given', () => {
    given(order, attached('a', 'API', 1))
      .when(detach('a', 1))
      .thenEvents(detached('a', 'API', 1));
    given(order, attached('a', 'API', 1))
      .when(detach('a', 2))
      .thenNothing();
    given(order, attached('a', 'API', 1))
      .when(detach('b', 1))
      .thenNothing();
    given(order, attached('a', 'API', 1), detached('a', 'API', 1))
      .when(attach('b', 'API'))
      .thenEvents(attached('b', 'API', 2));
  });
  it('get none once the cluster is to go, and none of what is gone is given back', () => {
    given(...onHub, deletionRequested)
      .when(attach('a', 'API'))
      .thenRejected('DELETION_REQUESTED');
    given(order, requested, gone).when(attach('a', 'API')).thenRejected('NOT_FOUND');
    given(order, requested, gone).when(detach('a', 1)).thenNothing();
  });
  it('hold the deletion of a cluster that was never sent', () => {
    given(order, attached('a', 'API', 1))
      .when({ type: 'DeleteCluster', at })
      .thenEvents(requested);
    given(order, attached('a', 'API', 1), requested)
      .when({ type: 'ConfirmAbsence', at, unsent: true })
      .thenNothing();
    given(order, attached('a', 'API', 1), requested, detached('a', 'API', 1))
      .when({ type: 'ConfirmAbsence', at, unsent: true })
      .thenEvents(gone);
    given(order, finalizers('bench'), attached('a', 'API', 1), requested)
      .when(change({ finalizers: [] }))
      .thenEvents({ type: 'ClusterFinalizersChanged', data: { at, finalizers: [] } });
  });
});

describe('external IPs of a cluster of its own', () => {
  const own: ClusterEvent = { type: 'ClusterOrdered', data: { ...ordered, externalIps: EXTERNAL_IPS } };
  const state = (...events: ClusterEvent[]) => {
    const folded = given(own, ...events).state();
    if (!isStoredCluster(folded)) throw new Error('no cluster');
    return folded;
  };

  it('are two with an attachment each, with names of their own', () => {
    const made = autoObjects(state());
    expect(made.map(({ kind, id, name }) => `${kind} ${id} ${name}`)).to.deep.equal([
      'externalIp 11111111-api my-cluster-api-11111111',
      'externalIp 22222222-ing my-cluster-ingress-22222222',
      'externalIpAttachment a-api my-cluster-api-11111111',
      'externalIpAttachment a-ing my-cluster-ingress-22222222',
    ]);
    for (const { name, document } of made) {
      expect(name).to.match(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);
      expect(document['metadata']).to.deep.equal({
        labels: { 'osac.openshift.io/auto-created': 'true', 'osac.openshift.io/auto-created-for': ID },
        annotations: { 'osac.openshift.io/owner-reference': ID },
      });
    }
    const long = { ...state(), name: `${'x'.repeat(39)}-${'y'.repeat(23)}` };
    for (const { name } of autoObjects(long)) expect(name).to.match(/^x{39}-(api|ingress)-\d{8}$/);
  });
  it('go after all attachments, whoever made them', () => {
    const [attachments, ips] = boundObjects(
      state(attached('a-api', 'API', 1), attached('mine', 'INGRESS', 2)),
    );
    expect(attachments?.map(({ id }) => id)).to.deep.equal(['a-api', 'mine', 'a-ing']);
    expect(ips?.map(({ id }) => id)).to.deep.equal(['11111111-api', '22222222-ing']);
  });

  const ordering = () => {
    const run = createOrderRun();
    run.command({ type: 'OrderCluster', ...ordered, externalIps: EXTERNAL_IPS });
    return run;
  };
  it('are made beside the cluster, which goes to the hub of their pool', () => {
    const run = ordering();
    expect(run.effect('place').args).to.include({ hub: HUB });
    expect(listAt(run.effect('make-addresses').args, 'objects')).to.have.length(4);
    run.perform('place', done(placedOn()));
    run.perform('make-addresses', done());
    run.perform('apply', done({ uid: 'uid-1' }));
    expect(run.effects()).to.not.include('make-addresses');
  });
  it('stop nothing where they cannot be made: it is tried again', () => {
    const run = ordering();
    run.perform('make-addresses', refused);
    run.perform('place', done(placedOn()));
    run.perform('apply', done({ uid: 'uid-1' }));
    expect(run.effects()).to.include('make-addresses');
    run.perform('make-addresses', done());
    expect(run.effects()).to.not.include('make-addresses');
  });
  it('are gone before the cluster is taken down', () => {
    const run = ordering();
    run.perform('make-addresses', done());
    run.perform('place', done(placedOn()));
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    run.command({ type: 'DeleteCluster', at: time(50) });
    expect(run.effects()).to.include('remove-addresses').and.not.include('delete');
    const groups = listAt(run.effect('remove-addresses').args, 'groups') as readonly JsonObject[][];
    expect(groups.map((group) => group.map((each) => stringAt(each, 'kind')))).to.deep.equal([
      ['externalIpAttachment', 'externalIpAttachment'],
      ['externalIp', 'externalIp'],
    ]);
    run.perform('remove-addresses', failed('StillThere'));
    expect(run.effects()).to.not.include('delete');
    run.perform('remove-addresses', done());
    expect(run.effects()).to.include('delete');
  });
  it('are gone before a cluster that was never sent', () => {
    const run = ordering();
    run.command({ type: 'DeleteCluster', at: time(50) });
    expect(run.clusterTypes()).to.not.include('ClusterDeleted');
    run.perform('remove-addresses', done());
    run.commands();
    expect(run.clusterTypes().at(-1)).to.equal('ClusterDeleted');
    expect(run.isClosed()).to.equal(true);
  });
  it('are part of the spec that callers read', () => {
    const view = cluster.view(state());
    expect(view.exists && objectAt(view.document, 'spec')['auto_external_ip_attachment']).to.equal(true);
  });
});
