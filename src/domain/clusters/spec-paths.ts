import type { GovernedKind } from '../catalog/field-governance.ts';
import { governedSpecOf, LEAF, REFERENCE, FULL_REFERENCE, PARAMETERS } from '../catalog/spec-shape.ts';

/** The fields of a cluster's spec that a catalogue item may govern (OSAC). A test compares this with the message. */
export const CLUSTER_SPEC: GovernedKind = governedSpecOf({
  message: 'Cluster',
  words: 'cluster',
  secrets: ['pull_secret'],
  templateParts: { node_sets: 'node set' },
  shape: {
    [PARAMETERS]: { '*': LEAF },
    node_sets: { '*': { host_type: FULL_REFERENCE, size: LEAF } },
    pull_secret: LEAF,
    ssh_public_key: LEAF,
    version: FULL_REFERENCE,
    network: { pod_cidr: LEAF, service_cidr: LEAF },
    network_attachment: { subnet: REFERENCE, security_groups: LEAF },
    auto_external_ip_attachment: LEAF,
    pull_secret_secret: REFERENCE,
  },
});
