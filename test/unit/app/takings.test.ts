import { expect } from 'chai';
import { createParentEffects } from '../../../src/app/hubs/parent-effects.ts';
import { repairTakings } from '../../../src/app/hubs/taking-repair.ts';
import { aggregateOf, kinds } from '../../../src/domain/kinds.ts';
import { subnet } from '../../../src/domain/networks/subnet.resource.ts';
import { claimsOf } from '../../../src/domain/networks/subnet-plan.ts';
import {
  planOf,
  virtualNetwork,
  type NetworkCommand,
} from '../../../src/domain/networks/virtual-network.resource.ts';
import { commandContext, effectCall, hubFixture } from '../../support/hubs/hub-fixture.ts';
import { silentLogger } from '../../support/loggers.ts';
import { manualTime } from '../../support/manual-time.ts';

const at = '2026-11-23T09:00:00.000Z';
const common = { at, tenant: 't1', project: '', name: 'n', creator: 'someone' };
const networks = aggregateOf(virtualNetwork);
const document = {
  spec: { region: 'r', network_class: { id: 'c', name: 'c' }, ipv4_cidr: '10.0.0.0/16' },
};
const place = {
  hub: 'h',
  namespace: 'osac',
  objectName: 'v',
  controller: 'operator',
  simulated: true,
} as const;
const parent = { kind: 'virtualNetwork', id: 'v' };
const holder = (id: string) => ({ kind: 'subnet', id });

describe('what an object has of the one that it lies in', () => {
  const world = async () => {
    const fixture = hubFixture();
    const time = manualTime();
    let serial = 0;
    const tell = (command: NetworkCommand) =>
      fixture.commandRunner.execute(networks, 'v', command, commandContext(`n${(serial += 1)}`, 't1'));
    await tell({ type: 'CreateDocument', id: 'v', ...common, document });
    const claims = async () =>
      claimsOf(planOf((await fixture.commandRunner.load(networks, 'v')).state)).map(
        ({ holder: of }) => of.id,
      );
    return { ...fixture, time, tell, claims };
  };

  it('is its place once that is ready, and what it claimed, which is given back as it was given', async () => {
    const { commandRunner, time, tell, claims, stop } = await world();
    const effects = createParentEffects({ commandRunner, clock: time.clock });
    const asked = async (operation: string, more: object = {}) => {
      const outcome = await effects(operation, { parent, holder: holder('s'), ...more }, effectCall());
      return outcome.outcome === 'done' ? outcome.result : outcome;
    };
    expect(await asked('place')).to.deep.equal({ place: null, state: '' });
    await tell({ type: 'PlaceOnHub', at, ...place });
    await tell({ type: 'RecordReady', at });
    expect(await asked('place')).to.deep.equal({ place, state: 'VIRTUAL_NETWORK_STATE_READY' });
    const wanted = { ranges: ['10.0.1.0/24'] };
    expect(await asked('claim', { wanted })).to.deep.equal({ generation: 1 });
    expect(await asked('claim', { wanted })).to.deep.equal({ generation: 1 });
    expect(await asked('look')).to.deep.equal({ generation: 1 });
    await asked('release', { generation: 7 });
    await asked('release');
    expect(await claims()).to.deep.equal(['s']);
    expect(await asked('release', { generation: 1 })).to.deep.equal({});
    expect(await asked('look')).to.deep.equal({});
    expect(await asked('claim', { wanted: { ranges: ['10.1.0.0/24'] } })).to.include({
      outcome: 'refused',
      reason: 'OUTSIDE_NETWORK',
    });
    await tell({ type: 'DeleteDocument', at });
    expect(await asked('place')).to.deep.include({ state: 'VIRTUAL_NETWORK_STATE_PENDING' });
    await stop();
  });

  it('is nothing of an object of any kind that is not there yet', () => {
    const lending = kinds.flatMap(({ kind, lends, decider }) =>
      lends === undefined ? [] : [`${kind} ${lends.held(decider.initialState()).length}`],
    );
    expect(lending).to.include.members(['cluster 0', 'externalIp 0', 'virtualNetwork 0']);
    for (const each of lending) expect(each).to.match(/ 0$/);
  });

  it('is given back where its creation died, which can then not come late', async () => {
    const { commandRunner, time, tell, claims, stop } = await world();
    for (const [i, id] of ['died', 'lives', 'over'].entries())
      await tell({ type: 'ClaimRanges', at, holder: holder(id), ranges: [`10.0.${i}.0/24`], by: `c${i}` });
    const subnets = aggregateOf(subnet);
    const spec = { virtual_network: { id: 'v', name: 'n' }, ipv4_cidr: '10.0.1.0/24' };
    const make = (id: string, abandonedBefore = 0) =>
      commandRunner.execute(
        subnets,
        id,
        { type: 'CreateDocument', id, ...common, document: { spec }, abandonedBefore },
        commandContext(`make ${id} ${abandonedBefore}`, 't1'),
      );
    await make('lives');
    const stopped = new AbortController();
    const known = async (id: string) => subnet.view((await commandRunner.load(subnets, id)).state);
    const repaired = repairTakings({
      lent: (kind) => (kind === 'virtualNetwork' ? [[{ id: 'v', tenant: 't1', project: '' }]] : []),
      commandRunner,
      holders: {
        isOver: async ({ id }) => id === 'over' || !(await known(id)).exists,
        ownerOf: async ({ id }) => {
          const view = await known(id);
          return view.exists ? view : undefined;
        },
      },
      ...time,
      logger: silentLogger,
      signal: stopped.signal,
    });
    await time.pass(60_000);
    stopped.abort();
    await repaired;
    expect(await claims()).to.deep.equal(['lives']);
    expect((await make('died')).outcome).to.equal('rejected');
    expect((await make('died', 1)).outcome).to.equal('accepted');
    await stop();
  });
});
