import { claimOfCluster } from '../../../src/domain/clusters/servable.ts';
import { expect } from 'chai';
import { parametersOf } from '../../../src/domain/catalog/templates.ts';
import { reviseCluster } from '../../../src/domain/clusters/revise.ts';
import { evolveCluster } from '../../../src/domain/clusters/cluster.ts';
import {
  initialCluster,
  isLiveCluster,
  type ClusterState,
  type LiveCluster,
} from '../../../src/domain/clusters/state.ts';
import { isRefused } from '../../../src/domain/decider.ts';
import type { HubCapacityEvent } from '../../../src/domain/hubs/capacity-events.ts';
import { claimOf, hubCapacityDecider, nodeLimit, shortages } from '../../../src/domain/hubs/capacity.ts';
import { hubFacts, namespaceOf } from '../../../src/domain/hubs/hub-facts.ts';
import { listAt, objectAt, own, stringAt, withoutEmpty } from '../../../src/domain/json-tools.ts';
import { givenSettings } from '../../../src/adapters/management-cluster/simulated/settings.ts';
import { INHERITED_NAMES } from '../../support/arbitraries/hostile-names.ts';
import { order } from './clusters/samples.ts';

const at = '2026-11-21T12:00:00.000Z';

describe('names that every object inherits', () => {
  for (const name of INHERITED_NAMES) {
    const keyed = <T>(value: T): { [key: string]: T } => Object.fromEntries([[name, value]]);

    it(`${name}: an own value or none`, () => {
      expect(own({}, name)).to.equal(undefined);
      expect(own(undefined, name)).to.equal(undefined);
      expect(own(keyed(1), name)).to.equal(1);
      expect(objectAt({}, name)).to.deep.equal({});
      expect(listAt({}, name)).to.deep.equal([]);
      expect(stringAt({}, name)).to.equal('');
      expect(Object.keys(withoutEmpty(keyed('x')))).to.deep.equal([name]);
    });

    it(`${name}: a cluster of this id holds capacity and gives it back`, () => {
      const claim = { controlPlanes: 1, nodes: { fc430: 2 } };
      const reserved: HubCapacityEvent = {
        type: 'HubCapacityReserved',
        data: { at, holder: { kind: 'cluster', id: name }, claim },
      };
      const empty = hubCapacityDecider.initialState();
      expect(claimOf(empty, { kind: 'cluster', id: name })).to.equal(undefined);
      const held = hubCapacityDecider.evolve(empty, reserved);
      expect(claimOf(held, { kind: 'cluster', id: name })).to.deep.equal(claim);
      expect(held.used).to.deep.equal(claim);
      const given = hubCapacityDecider.evolve(held, {
        type: 'HubCapacityReleased',
        data: { at, holder: { kind: 'cluster', id: name } },
      });
      expect(claimOf(given, { kind: 'cluster', id: name })).to.equal(undefined);
      expect(given.used).to.deep.equal({ controlPlanes: 0, nodes: {} });
      // Its bucket exists by now, and is an object like any other.
      expect(claimOf(given, { kind: 'cluster', id: name })).to.equal(undefined);
      expect(hubCapacityDecider.evolve(given, reserved).used).to.deep.equal(claim);
    });

    it(`${name}: a host type of this id is counted`, () => {
      const claim = { controlPlanes: 0, nodes: keyed(2) };
      const reserved: HubCapacityEvent = {
        type: 'HubCapacityReserved',
        data: { at, holder: { kind: 'cluster', id: 'c' }, claim },
      };
      const held = hubCapacityDecider.evolve(hubCapacityDecider.initialState(), reserved);
      expect(Object.entries(held.used.nodes)).to.deep.equal([[name, 2]]);
      expect(nodeLimit({ nodes: { fc430: 1 } }, name)).to.equal(0);
      const full = { limits: { nodes: keyed(3) }, used: held.used };
      expect(shortages(full, claim)).to.deep.equal([{ what: `${name} nodes`, wanted: 2, left: 1 }]);
      const nodeSets = { a: { hostType: { id: name, name }, size: 2 } };
      expect(Object.entries(claimOfCluster(nodeSets).nodes)).to.deep.equal([[name, 2]]);
    });

    it(`${name}: a tenant of this name has the hub's namespace`, () => {
      const hub = hubFacts({ id: 'h', document: { spec: { namespace: 'osac' } } });
      expect(namespaceOf(hub, name)).to.equal('osac');
    });

    it(`${name}: a node set of this name is a new one, or refused`, () => {
      const state = evolveCluster(initialCluster(), order);
      if (!isLiveCluster(state)) throw new Error('not ordered');
      const wanted = (live: LiveCluster) =>
        reviseCluster(live, at, {
          nodeSets: Object.fromEntries([
            ...Object.entries(live.nodeSets),
            [name, { hostType: { id: 'fc430', name: 'fc430' }, size: 1 }],
          ]),
        });
      const events = wanted(state);
      if (name.startsWith('_')) {
        expect(isRefused(events) && events.code, 'a name like that of the control plane').to.equal(
          'INVALID_NODE_SET_NAME',
        );
        return;
      }
      if (isRefused(events)) throw new Error(events.message);
      expect(events.map((event) => event.type)).to.include('NodeSetAdded');
      const grown = events.reduce<ClusterState>(evolveCluster, state);
      if (!isLiveCluster(grown)) throw new Error('gone');
      expect(own(grown.nodeSets, name)).to.deep.include({ size: 1 });
      const again = wanted(grown);
      expect(again).to.deep.equal([]);
      const less = reviseCluster(grown, at, { nodeSets: state.nodeSets });
      if (isRefused(less)) throw new Error(less.message);
      expect(less.map((event) => event.type)).to.include('NodeSetRemoved');
    });

    it(`${name}: a template parameter of this name has its default, or its value`, () => {
      const type = 'type.googleapis.com/google.protobuf.StringValue';
      const text = (value: string) => ({ '@type': type, value });
      const template = { id: 't', document: { parameters: [{ name, type, default: text('d') }] } };
      const entries = (given: object) => Object.entries(parametersOf(template, given as never));
      expect(entries({})).to.deep.equal([[name, text('d')]]);
      expect(entries(keyed(text('v')))).to.deep.equal([[name, text('v')]]);
    });

    it(`${name}: a simulation key of this name is unknown`, () => {
      expect(() => givenSettings(keyed('1'))).to.throw(`unknown simulation key "${name}"`);
    });
  }
});
