import { OSAC_GROUP, type OwnedObject } from '../../../../domain/hubs/hub-object.ts';
import { EXTERNAL_IP_ATTACHMENT, SUBNET, VIRTUAL_NETWORK } from '../../../../domain/networks/hub-objects.ts';
import type { Behaviour } from './behaviour.ts';
import { phaseBehaviour } from './phases.ts';

/** Networks and what lies in them: accepted, made ready, and gone some time after their deletion. */
const networkBehaviour = (kind: OwnedObject, immutable: readonly string[]): Behaviour =>
  phaseBehaviour({
    kind,
    finalizer: `${OSAC_GROUP}/${kind.kind.toLowerCase()}-finalizer`,
    phases: [
      { after: 'accept', status: () => ({ phase: 'Progressing' }) },
      { after: 'finish', status: () => ({ phase: 'Ready' }) },
    ],
    failed: (text) => ({ phase: 'Failed', message: text }),
    deleting: { phase: 'Deleting' },
    immutable,
  });

const RANGES = ['ipv4Cidr', 'ipv6Cidr'];

export const networkBehaviours: readonly Behaviour[] = [
  networkBehaviour(VIRTUAL_NETWORK, ['region', 'networkClass', 'implementationStrategy', ...RANGES]),
  networkBehaviour(EXTERNAL_IP_ATTACHMENT, [
    ...['externalIP', 'computeInstance', 'cluster', 'baremetalInstance', 'targetEndpoint'],
  ]),
  networkBehaviour(SUBNET, ['virtualNetwork', ...RANGES]),
];
