import { OSAC_GROUP, type OwnedObject } from '../../../../domain/hubs/hub-object.ts';
import {
  EXTERNAL_IP_ATTACHMENT,
  NAT_GATEWAY,
  SECURITY_GROUP,
  SUBNET,
  VIRTUAL_NETWORK,
} from '../../../../domain/networks/hub-objects.ts';
import { fnv1a64, hex64 } from '../../../../domain/hash.ts';
import type { Behaviour } from './behaviour.ts';
import { phaseBehaviour } from './phases.ts';

/** Networks and what lies in them: accepted, made ready, and gone some time after their deletion. */
const networkBehaviour = (
  kind: OwnedObject,
  immutable: readonly string[],
  about: (spec: object) => object = () => ({}),
): Behaviour =>
  phaseBehaviour({
    kind,
    finalizer: `${OSAC_GROUP}/${kind.kind.toLowerCase()}-finalizer`,
    phases: [
      { after: 'accept', status: ({ spec }) => ({ phase: 'Progressing', ...about(spec) }) },
      { after: 'finish', status: ({ spec }) => ({ phase: 'Ready', ...about(spec) }) },
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
  // Its rules change: each phase says which of them it is about.
  networkBehaviour(SECURITY_GROUP, ['virtualNetwork', 'implementationStrategy'], (spec) => ({
    version: hex64(fnv1a64(JSON.stringify(spec))),
  })),
  networkBehaviour(NAT_GATEWAY, ['virtualNetwork', 'externalIP']),
];
