import { expect } from 'chai';
import { orderName } from '../../../src/domain/clusters/cluster-order-manifest.ts';
import { observingStage, order, scripted } from './observing.ts';
import { eventually } from '../../support/eventually.ts';

describe('hub observer', function () {
  this.timeout(20_000);
  const { onFake } = observingStage();

  it('deletes what is left on a hub of a cluster that is over', async () => {
    const deleted: string[] = [];
    const script = scripted([
      { type: 'applied', object: order('over') },
      { type: 'applied', object: order('leaving', { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
      { type: 'applied', object: order('c1') },
    ]);
    const { fed, register, observer } = onFake(
      {
        watchClusterOrders: script.watch,
        deleteClusterOrder: async ({ name }, { effectId }) => {
          deleted.push(`${name} by ${effectId}`);
          return true;
        },
      },
      (clusterId) => clusterId !== 'c1',
    );
    await register('sim-a');
    await eventually('deleted', () => deleted.length > 0 && fed.length > 0);
    expect(deleted).to.deep.equal(['order-over by orphan/sim-a/order-over']);
    expect(fed.map(({ clusterId }) => clusterId)).to.deep.equal(['c1']);
    expect(observer.status()[0]?.orphans).to.equal(1);
  });

  it('counts orders that nobody here ever ordered, leaves them alone and reads nothing of them', async () => {
    const read: string[] = [];
    const script = scripted([
      { type: 'applied', object: order('strange') },
      { type: 'applied', object: order('strange', { phase: 'Ready' }) },
      { type: 'applied', object: order('stranger') },
      { type: 'applied', object: order('c1') },
      { type: 'synced', names: ['order-strange', 'order-stranger', 'order-c1'], resourceVersion: '1' },
      { type: 'deleted', object: order('stranger') },
    ]);
    const { fed, register, observer } = onFake(
      {
        watchClusterOrders: script.watch,
        getHostedCluster: async ({ name }) => {
          read.push(name);
          return undefined;
        },
      },
      undefined,
      (clusterId) => clusterId !== 'c1',
    );
    await register('sim-a');
    await eventually('one is left', () => script.opened() === 2 && observer.status()[0]?.unknown === 1);
    await eventually('ours is fed', () => fed.some(({ clusterId }) => clusterId === 'c1'));
    expect(observer.status()[0]).to.include({ orders: 2, unknown: 1, orphans: 0 });
    expect(read).to.deep.equal(['order-c1']);
  });

  it('no longer counts an order that was taken over since', async () => {
    let asked = 0;
    const script = scripted(
      [
        { type: 'applied', object: order('adopted') },
        { type: 'synced', names: ['order-adopted'], resourceVersion: '1' },
      ],
      [
        { type: 'applied', object: order('adopted', { phase: 'Ready' }) },
        { type: 'synced', names: ['order-adopted'], resourceVersion: '2' },
      ],
    );
    const { fed, register, observer } = onFake({ watchClusterOrders: script.watch }, undefined, () => {
      asked += 1;
      return asked === 1;
    });
    await register('sim-a');
    await eventually('it is ours', () => fed.some(({ clusterId }) => clusterId === 'adopted'));
    expect(observer.status()[0]).to.include({ orders: 1, unknown: 0 });
  });

  it('nor one that shows no change: what is adopted and at rest is not written to', async () => {
    let ordered = false;
    const script = scripted([
      { type: 'applied', object: order('adopted', { phase: 'Ready' }) },
      { type: 'synced', names: ['order-adopted'], resourceVersion: '1' },
    ]);
    const { register, observer } = onFake({ watchClusterOrders: script.watch }, undefined, () => !ordered);
    await register('sim-a');
    await eventually('it is strange', () => observer.status()[0]?.unknown === 1);
    ordered = true;
    expect(observer.status()[0]).to.include({ orders: 1, unknown: 0 });
  });

  it('tells of two orders with the label of one cluster, and keeps to the one of its name', async () => {
    const ours = orderName('c1');
    const copy = order('c1', { name: 'order-copy', uid: 'uid-copy' });
    const first = order('c1', { name: ours });
    const connection = scripted([
      { type: 'applied', object: copy },
      { type: 'applied', object: first },
      { type: 'synced', names: [ours, 'order-copy'], resourceVersion: '2' },
      { type: 'deleted', object: copy },
    ]);
    const hub = { watchClusterOrders: connection.watch, getClusterOrder: async () => first };
    const { fed, register } = onFake(hub);
    await register('sim-a');
    const last = () => fed.at(-1)?.observation;
    await eventually('one is left', () => last()?.duplicates?.length === 0);
    const about = fed.filter(({ observation }) => observation.order?.uid === first.uid);
    expect(fed.some(({ observation }) => observation.order === null)).to.equal(false);
    expect(about.length).to.be.greaterThan(0);
    expect(last()?.order?.uid).to.equal(first.uid);
  });
});
