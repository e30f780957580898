import { expect } from 'chai';
import { createPoolAdmin } from '../../../src/app/pools/pool-admin.ts';
import { POOL_KINDS } from '../../../src/app/pools/pool-kinds.ts';
import { poolSpaceAggregate } from '../../../src/domain/kinds.ts';
import { commandContext, hubFixture } from '../../support/hubs/hub-fixture.ts';
import { manualTime } from '../../support/manual-time.ts';

const { vlan, prefix } = POOL_KINDS;
const common = { zone: 'east', reserved: [], quarantineSeconds: 60 };
const onFabric = (...ranges: string[]) => ({ ...common, fabric: 'leaf', ranges });

describe('pools of one fabric', () => {
  const { commandRunner, stop } = hubFixture();
  const time = manualTime();
  const admin = createPoolAdmin({ commandRunner, clock: time.clock });
  after(stop);
  let commands = 0;
  const context = () => {
    commands += 1;
    return commandContext(`admin-${commands}`);
  };
  const create = async (id: string, ...ranges: string[]) =>
    told(await admin.create(vlan, id, onFabric(...ranges), 'test', context()));
  const resize = async (id: string, ...ranges: string[]) =>
    told(await admin.resize(vlan, id, { ranges }, 'test', context()));
  const told = (outcome: Awaited<ReturnType<typeof admin.retire>>) =>
    outcome.outcome === 'accepted' ? 'accepted' : outcome.rejection.code;

  it('never overlap, whoever is first', async () => {
    const both = await Promise.all([create('a', '100-199'), create('b', '150-250')]);
    expect(both.toSorted()).to.deep.equal(['POOLS_OVERLAP', 'accepted']);
    const winner = both[0] === 'accepted' ? 'a' : 'b';
    expect(await resize(winner, '100-149')).to.equal('accepted');
    // What it gave up is another one's to take, and to give up in its turn.
    expect(await create('c', '150-199')).to.equal('accepted');
    expect(await resize(winner, '100-199')).to.equal('POOLS_OVERLAP');
    expect(await resize('c', '160-199')).to.equal('accepted');
    expect(await resize(winner, '100-159')).to.equal('accepted');
  });

  it('of other fabrics and VRFs may', async () => {
    const other = { ...onFabric('100-199'), fabric: 'other' };
    expect(told(await admin.create(vlan, 'd', other, 'test', context()))).to.equal('accepted');
    const ranges = ['10.0.0.0/16'];
    for (const vrf of ['one', 'two'])
      expect(told(await admin.create(prefix, vrf, { ...common, vrf, ranges }, 'test', context()))).to.equal(
        'accepted',
      );
    const inside = { ...common, vrf: 'one', ranges: ['10.0.4.0/24'] };
    expect(told(await admin.create(prefix, 'three', inside, 'test', context()))).to.equal('POOLS_OVERLAP');
  });

  it('leave their ranges to others once they are retired, empty, and nothing rests', async () => {
    const holder = { kind: 'cluster', id: 'x' };
    const work = (command: Parameters<typeof vlan.aggregate.decider.decide>[1]) =>
      commandRunner.execute(vlan.aggregate, 'c', command, context());
    const at = time.clock.now();
    await work({ type: 'AllocateFromPool', at, holder, purpose: 'net', request: {} });
    expect(told(await admin.retire(vlan, 'c', 'test', context()))).to.equal('accepted');
    expect(await create('e', '160-170')).to.equal('POOLS_OVERLAP');
    await work({ type: 'ReleaseToPool', at, holder, generation: 1 });
    expect(await create('e', '160-170')).to.equal('POOLS_OVERLAP');
    await time.pass(60_000);
    expect(await create('e', '160-170')).to.equal('accepted');
  });

  it('can be told of a creation that a crash ended, and finish it', async () => {
    const lost = { type: 'ReservePoolSpace', at: time.clock.now(), pool: 'lost', base: -1 } as const;
    const reserved = { ...lost, ranges: ['1000-1099'] };
    await commandRunner.execute(poolSpaceAggregate, 'fabric.leaf', reserved, context());
    const met = await admin.create(vlan, 'f', onFabric('1000-1009'), 'test', context());
    expect(met)
      .to.have.nested.property('rejection.message')
      .that.includes("creation of 'lost' was not finished");
    expect(await create('lost', '1050-1099')).to.equal('accepted');
    expect(await create('f', '1000-1009')).to.equal('accepted');
  });

  it('that nobody created are not changed', async () => {
    expect(await resize('nobody', '300')).to.equal('NO_SUCH_POOL');
    expect(told(await admin.retire(vlan, 'nobody', 'test', context()))).to.equal('NO_SUCH_POOL');
  });
});
