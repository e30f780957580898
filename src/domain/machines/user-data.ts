import { z } from 'zod';
import { base32, fnv1a64 } from '../hash.ts';
import type { OwnedObject } from '../hubs/hub-object.ts';
import { shownMeta } from '../hubs/hub-codecs.ts';
import { networkObject } from '../networks/hub-objects.ts';
import type { Placed, PlacedState } from '../placed-document.ts';
import type { PlacedRun } from '../placed-run.ts';
import type { PlacedDeclaration } from '../placed-declaration.ts';
import type { ResourceKind } from '../resource.ts';
import type { SecretRef } from '../secret-ref.ts';

/** User data of machines, virtual and bare metal (OSAC): a secret here, and a Secret on the hub of the machine. */
export const USER_DATA = 'spec.user_data';
const MAX_USER_DATA = 65_536;

export const USER_DATA_RULES = {
  path: USER_DATA,
  kind: 'user-data',
  reads: '***',
  encoding: 'text',
  maxBytes: MAX_USER_DATA,
} as const satisfies ResourceKind['secrets'][number];

const userData = z.object({ userData: z.string() });
const RIGHTS = { verbs: ['create', 'delete', 'get', 'list', 'patch'], optional: true } as const;

/** Read by nobody but its machine: it has the name of that, and goes after it. `word`: of the machine, in labels. */
export const userDataSecret = (
  kind: string,
  word: string,
  owner: string,
  prefix = 'userdata',
): OwnedObject<z.infer<typeof userData>> => {
  const meta = networkObject(kind, word, 'user data Secrets');
  return {
    ...meta,
    group: '',
    version: 'v1',
    plural: 'secrets',
    owner,
    nameOf: (id) => `${prefix}-${base32(fnv1a64(id))}`,
    stored: { kind: 'Secret', field: 'stringData' },
    unwatched: true,
    withoutPlaybook: true,
    rights: [
      { ...RIGHTS, within: 'orders', setup: 'hub-access' },
      { ...RIGHTS, within: 'anywhere', setup: 'tenant-namespaces' },
    ],
    spec: userData,
    secretFields: ['userData'],
    sample: { spec: { userData: 'check' }, status: {} },
    // What is stored is not read: it is written again whenever its machine is sent again.
    drift: (_stored, wanted) => ({ patch: wanted }),
    shown: (object) => ({ ...shownMeta(object, meta.idLabel), spec: { userData: '' } }),
  };
};

export const userDataOf = ({ subject }: PlacedRun): SecretRef | undefined =>
  (subject as Placed).secrets[USER_DATA];

/** It is on the hub before its machine. */
export const userDataBeside = <State extends PlacedState>(
  object: OwnedObject,
): NonNullable<PlacedDeclaration<State, never>['beside']>[number] => ({
  step: 'user-data',
  object,
  needed: (run) => userDataOf(run) !== undefined,
  wanted: (run) => ({ spec: {}, secrets: { userData: { ...userDataOf(run) } } }),
});

export const USER_DATA_DEEDS = {
  'user-data': 'send its user data to its hub',
  'undo-user-data': 'delete its user data from its hub',
};
