import { expect } from 'chai';
import { clusterTemplate } from '../../../../src/domain/catalog/cluster-template.resource.ts';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import type { ClusterCommand, RequestedNodeSet } from '../../../../src/domain/clusters/commands.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { orderedNodeSets } from '../../../../src/domain/clusters/resolve.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { ordered, time } from './samples.ts';

const at = time(1);

describe('resource classes that a template allows', () => {
  describe('in the template', () => {
    const { given } = specify(clusterTemplate.decider);
    const publish = (classes: readonly string[]): DocumentCommand => ({
      type: 'CreateDocument',
      at,
      id: 'osac.templates.small',
      tenant: 'shared',
      project: '',
      name: 'small',
      creator: 'publisher',
      document: { allowed_resource_classes: [...classes] },
    });
    it('are label values, each named once', () => {
      expect(given().when(publish(['fc430', 'ci-worker', 'h100.8'])).decision).to.have.lengthOf(1);
      for (const wrong of [[''], ['a b'], ['-x'], ['x'.repeat(64)], ['fc430', 'fc430']])
        given()
          .when(publish(wrong))
          .thenRejected('INVALID_RESOURCE_CLASS', { field: 'allowed_resource_classes' });
    });
  });

  describe('in an order', () => {
    const template = (allowed: readonly string[]) => ({
      id: 'osac.templates.small',
      document: {
        node_sets: { workers: { host_type: { id: 'fc430' }, size: 2 } },
        allowed_resource_classes: [...allowed],
      } as JsonObject,
    });
    const hostType = () => ({
      id: 'fc430',
      name: 'small-host',
      tenant: 'shared',
      document: {},
      secrets: {},
      revision: 0,
      deleting: false,
    });
    it('are by id or by name; none named means any', () => {
      for (const allowed of [[], ['fc430'], ['small-host', 'g5']])
        expect(orderedNodeSets({}, template(allowed), { hostType })).to.have.property('workers');
    });
    it('refuse a node set of another class and say which there are', () => {
      expect(orderedNodeSets({}, template(['h100', 'g5']), { hostType })).to.deep.include({
        code: 'HOST_TYPE_NOT_ALLOWED',
        message:
          "host type 'fc430' of node set 'workers' is not allowed by template 'osac.templates.small'; allowed resource classes are: g5, h100",
        field: 'spec.node_sets.workers.host_type',
      });
    });
  });

  describe('in a change of node sets', () => {
    const { given } = specify(cluster.decider);
    const order = (allowed?: readonly string[]): ClusterEvent => ({
      type: 'ClusterOrdered',
      data: {
        ...ordered,
        template: {
          ...ordered.template,
          ...(allowed === undefined ? {} : { allowedResourceClasses: allowed }),
        },
      },
    });
    const addSet = (name: string, hostType: string, size = 1): ClusterCommand => {
      const nodeSets: { [set: string]: RequestedNodeSet } = {
        ...ordered.nodeSets,
        [name]: { hostType: { id: hostType, name: hostType }, size },
      };
      return { type: 'ReviseCluster', at, changes: { nodeSets, resized: ['workers', 'gpu'] } };
    };
    it('are those of the order: a new set keeps to them, whatever the template says by now', () => {
      given(order(['fc430', 'g5']))
        .when(addSet('more', 'h100'))
        .thenRejected('HOST_TYPE_NOT_ALLOWED', { field: 'spec.node_sets.more.host_type' });
      expect(given(order(['fc430', 'g5'])).when(addSet('more', 'g5')).decision).to.have.lengthOf(1);
      expect(given(order()).when(addSet('more', 'h100')).decision).to.have.lengthOf(1);
    });
    it('do not stand in the way of a set that is there already', () => {
      expect(given(order(['h100'])).when(addSet('workers', 'fc430', 7)).decision).to.have.lengthOf(1);
    });
  });
});
