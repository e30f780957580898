import { reject, type Rejection } from '../decider.ts';

/**
 * Metering names components of a cluster by their node sets, the control plane by `_control_plane`, with a slash in
 * front
 * (OSAC): both are for ids alone. `field`: path of the node set in the request.
 */
export const nodeSetNameRejection = (name: string, field: string): Rejection | undefined =>
  !name.startsWith('_') && !name.includes('/')
    ? undefined
    : reject(
        'invalid',
        'INVALID_NODE_SET_NAME',
        `node set '${name}' needs another name: it must not begin with an underscore, nor hold a slash`,
        { field },
      );
