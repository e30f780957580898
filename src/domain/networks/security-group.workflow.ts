import { stringAt } from '../json-tools.ts';
import { placeWithParent, wokenByParent } from '../placed-with-parent.ts';
import { documentOf } from '../placed-run.ts';
import { placedKind } from '../placed-workflow.ts';
import { networkEventTypes } from './event-types.ts';
import { SECURITY_GROUP } from './hub-objects.ts';
import {
  securityGroup,
  specOf,
  type GroupCommand,
  type GroupEvent,
  type GroupState,
} from './security-group.resource.ts';
import { hubRules } from './security-rules.ts';
import { IN_NETWORK, networkIn } from './virtual-network.resource.ts';

/** From the ordered group to its object on the hub of its network, which changes with its rules, and back. */
export const actingSecurityGroup = placedKind<GroupState, GroupCommand, GroupEvent>(securityGroup, {
  eventTypes: networkEventTypes,
  object: SECURITY_GROUP,
  wakes: wokenByParent(IN_NETWORK),
  first: [placeWithParent(IN_NETWORK, SECURITY_GROUP)],
  changes: true,
  wanted: (run) => {
    const spec = specOf(documentOf(run));
    return {
      spec: {
        virtualNetwork: networkIn(documentOf(run)),
        implementationStrategy: stringAt(spec, 'implementation_strategy'),
        ingressRules: [...hubRules(spec, 'ingress')],
        egressRules: [...hubRules(spec, 'egress')],
      },
    };
  },
  ready: (_run, object, at) => ({ type: 'RecordShown', at, version: stringAt(object, 'version') }),
  states: ['accepted', 'pending', 'ready', 'failed', 'deleting', 'delete_failed'],
  deeds: { place: 'find the hub of its virtual network' },
  sentences: { SecurityGroupBecameReady: 'Its hub carries its rules out.' },
});
