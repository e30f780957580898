import { expect } from 'chai';
import { evidenceOf, type Question, type Shown } from '../../../src/app/automation/automation-effects.ts';
import type {
  ObservedClusterOrder,
  ObservedHostedCluster,
} from '../../../src/domain/clusters/hub-objects.ts';

const SINCE = '2026-11-21T10:00:00.000Z';
const order = (more: Partial<ObservedClusterOrder> = {}): ObservedClusterOrder => ({
  name: 'order-a',
  namespace: 'orders',
  uid: 'u',
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: '2026-11-21T09:00:00Z',
  finalizers: ['osac.openshift.io/finalizer'],
  annotations: {},
  spec: {
    templateID: 't',
    templateParameters: '{}',
    nodeRequests: [
      { resourceClass: 'a', numberOfNodes: 9 },
      { resourceClass: 'a', numberOfNodes: 2 },
      { resourceClass: 'b', numberOfNodes: 1 },
    ],
  },
  conditions: [],
  jobs: [],
  ...more,
});
const marked = { finalizers: ['osac.openshift.io/finalizer', 'osac.openshift.io/infrastructure'] };
const hosted = (more: Partial<ObservedHostedCluster> = {}): ObservedHostedCluster => ({
  name: 'order-a',
  namespace: 'orders-order-a',
  conditions: [],
  ...more,
});
const report = (time: string, name = '') => ({
  annotations: {
    'osac.openshift.io/ansible-workflow-time': time,
    ...(name === '' ? {} : { 'osac.openshift.io/ansible-workflow-name': name }),
  },
});
const pools = (...sizes: (readonly [string, number])[]) => ({
  nodePools: sizes.map(([resourceClass, desired]) => ({ resourceClass, desired, ready: 0 })),
});
const says = (shown: Shown, question: Partial<Question> = {}): boolean =>
  evidenceOf(shown, { purpose: 'provision', since: SINCE, ...question }) !== undefined;

describe('what shows that a playbook has begun', () => {
  const cases: readonly (readonly [string, Shown, Partial<Question>, boolean])[] = [
    ['a new order', { order: order(), hosted: undefined }, {}, false],
    ['its finalizer', { order: order(marked), hosted: undefined }, {}, true],
    ['its hosted cluster', { order: order(), hosted: hosted() }, {}, true],
    ['a hosted cluster that may not be read', { order: order(), hosted: 'unreadable' }, {}, false],
    ['a report since', { order: order(report('2026-11-21T10:00:01Z')), hosted: undefined }, {}, true],
    ['a report from before', { order: order(report('2026-11-21T09:59:59Z')), hosted: undefined }, {}, false],
    ['a report of no time', { order: order(report('soon')), hosted: undefined }, {}, false],
    [
      'a report of a deletion',
      { order: order(report('2026-11-21T10:00:01Z', 'osac-delete-hosted-cluster')), hosted: undefined },
      {},
      false,
    ],
    ['a changed order as it was', { order: order(marked), hosted: hosted() }, { again: 'other' }, false],
    [
      'a changed order whose pools are as ordered',
      { order: order(marked), hosted: hosted(pools(['b', 1], ['a', 2])) },
      { again: 'nodes' },
      true,
    ],
    [
      'one whose pools are not yet',
      { order: order(marked), hosted: hosted(pools(['b', 1], ['a', 1])) },
      { again: 'nodes' },
      false,
    ],
    [
      'one that has a pool more',
      { order: order(marked), hosted: hosted(pools(['b', 1], ['a', 2], ['c', 1])) },
      { again: 'nodes' },
      false,
    ],
    ['one whose pools are not shown', { order: order(marked), hosted: hosted() }, { again: 'nodes' }, false],
    [
      'pools, of a change of something else',
      { order: order(marked), hosted: hosted(pools(['b', 1], ['a', 2])) },
      { again: 'other' },
      false,
    ],
    [
      'an order to remove as it was',
      { order: order(marked), hosted: hosted() },
      { purpose: 'deprovision' },
      false,
    ],
    ['one without its finalizer', { order: order(), hosted: undefined }, { purpose: 'deprovision' }, true],
    [
      'one without it whose cluster a late creation made anew',
      { order: order(), hosted: hosted() },
      { purpose: 'deprovision' },
      false,
    ],
    [
      'one without its cluster',
      { order: order(marked), hosted: undefined },
      { purpose: 'deprovision' },
      true,
    ],
    [
      'one without its cluster, which had gone before it was asked again',
      { order: order(marked), hosted: undefined },
      { purpose: 'deprovision', cleaning: true },
      false,
    ],
    [
      'one without its finalizer by now',
      { order: order(), hosted: undefined },
      { purpose: 'deprovision', cleaning: true },
      true,
    ],
    [
      'one whose cluster is being deleted',
      { order: order(marked), hosted: hosted({ deletionTimestamp: SINCE }) },
      { purpose: 'deprovision' },
      true,
    ],
    [
      'one whose cluster may not be read',
      { order: order(marked), hosted: 'unreadable' },
      { purpose: 'deprovision' },
      false,
    ],
    [
      'one with a late report of its creation',
      {
        order: order({ ...marked, ...report('2026-11-21T10:00:01Z', 'create-hosted-cluster') }),
        hosted: hosted(),
      },
      { purpose: 'deprovision' },
      false,
    ],
  ];
  for (const [what, shown, question, expected] of cases) {
    it(`${what}: ${expected ? 'yes' : 'no'}`, () => expect(says(shown, question)).to.equal(expected));
  }
});
