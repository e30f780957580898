import { AuditKeyMissing, AuditKeyReplaced, type AuditKeys } from '../../app/audit/audit-keys.ts';
import type { SignerStatus } from '../../app/audit/signer.ts';
import type { EventStore } from '../../app/log/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { LookServices } from '../audit-reads.ts';
import { ApiError, unfit } from '../errors.ts';
import type { Positions } from '../positions.ts';
import { type ActServices, actRecorder } from './acts.ts';
import { AUDIT_TREE, KEYS_BODY, type AuditTree, type NewKey } from './audit-tree-operations.ts';
import { eventRoutes, type EventServices } from './events.ts';
import { fieldsOf, readBody, rendered } from './forms.ts';
import type { HubServices } from './hub-services.ts';
import { hubRoutes } from './hubs.ts';
import { kafkaRoutes, type KafkaServices } from './kafka.ts';
import { laneRoutes, type LaneServices } from './lanes.ts';
import { orderRoutes, type OrderServices } from './orders.ts';
import { poolRoutes, type PoolServices } from './pools.ts';
import { projectionRoutes, type ProjectionServices } from './projections.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';
import { BACKUP_BODY } from './upkeep-operations.ts';
import { usageRoutes, type UsageServices } from './usage.ts';

/** The tree over the log: how far its signatures are, and the keys that sign it. */
export type AuditTreeServices = ActServices & {
  /** Absent without the role `auditor`. */
  readonly auditing?: {
    readonly origin: string;
    readonly keys: Pick<AuditKeys, 'chain' | 'rotate'>;
    status(): SignerStatus;
    progress(): Promise<{
      readonly signedSize: number;
      readonly unsignedLeaves: number;
      readonly headAgeSeconds: number;
      readonly caughtUp: boolean;
    }>;
  };
};

export const auditTreeRoutes = (services: AuditTreeServices): readonly LedgerRoute[] => [
  { verb: 'GET', path: 'audit/tree', handler: async () => ({ json: await statusOf(services) }) },
  {
    verb: 'POST',
    path: 'audit/keys',
    fields: fieldsOf(KEYS_BODY),
    handler: async (call) => ({ json: await rotated(call, services) }),
  },
];

const withRole = ({ auditing }: AuditTreeServices): NonNullable<AuditTreeServices['auditing']> => {
  if (auditing === undefined) throw unfit('this instance does not have the role auditor', 'NO_AUDITOR');
  return auditing;
};

const statusOf = async (services: AuditTreeServices): Promise<AuditTree> => {
  const { origin, keys, status, progress } = withRole(services);
  return rendered(AUDIT_TREE, { origin, ...status(), ...(await progress()), keys: await keys.chain() });
};

const rotated = async (call: LedgerCall, services: AuditTreeServices): Promise<NewKey> => {
  const { keys } = withRole(services);
  const { lost } = readBody(call.body, KEYS_BODY);
  await services.recordAct(call, { act: 'audit/keys', ...(lost ? { on: 'lost' } : {}) });
  try {
    const { vkey, since, rotation } = await keys.rotate({ lost });
    return { vkey, since, announced: rotation !== undefined };
  } catch (error) {
    if (error instanceof AuditKeyReplaced) throw new ApiError('ABORTED', error.message);
    if (error instanceof AuditKeyMissing)
      throw new ApiError('FAILED_PRECONDITION', error.message, { reason: 'AUDIT_KEY_MISSING' });
    throw error;
  }
};

type StoreServices = ActServices & {
  readonly store: EventStore;
  readonly positions: Positions;
  readonly storeInfo?: () => Promise<JsonObject>;
  /** Copies the running store to a file on this machine; absent where the adapter cannot. */
  readonly backupStore?: (file: string) => Promise<{ readonly file: string; readonly bytes: number }>;
  /** Checks the running store as far as that goes without stopping it. */
  readonly checkStore?: () => Promise<{ readonly events: number; readonly findings: readonly string[] }>;
};

const storeRoutes = (services: StoreServices): readonly LedgerRoute[] => [
  {
    verb: 'GET',
    path: 'store',
    handler: async ({ signal }) => {
      const { store, positions } = services;
      const last = await store.lastPosition(signal);
      return {
        json: {
          ...(await services.storeInfo?.()),
          kind: store.kind,
          store_id: store.storeId,
          single_writer: store.singleWriter,
          ...(last === undefined ? {} : { last_position: positions.format(last) }),
        },
      };
    },
  },
  {
    verb: 'POST',
    path: 'store/backup',
    fields: fieldsOf(BACKUP_BODY),
    handler: async (call) => {
      if (services.backupStore === undefined) throw unsupported(services.store.kind, 'backed up');
      const { file } = readBody(call.body, BACKUP_BODY);
      await services.recordAct(call, { act: 'store/backup', typed: file });
      return { json: await services.backupStore(file) };
    },
  },
  {
    verb: 'POST',
    path: 'store/check',
    handler: async (call) => {
      if (services.checkStore === undefined) throw unsupported(services.store.kind, 'checked');
      await services.recordAct(call, { act: 'store/check' });
      return { json: await services.checkStore() };
    },
  },
];

const unsupported = (kind: string, what: string): ApiError =>
  new ApiError(
    'UNIMPLEMENTED',
    `an event store of kind '${kind}' cannot be ${what} from here; use its own tools`,
  );

export type LedgerServices = Omit<
  AuditTreeServices &
    EventServices &
    HubServices &
    KafkaServices &
    LaneServices &
    OrderServices &
    PoolServices &
    ProjectionServices &
    StoreServices &
    UsageServices,
  keyof ActServices
> &
  LookServices;

export const ledgerRoutes = (given: LedgerServices): readonly LedgerRoute[] => {
  const services = { ...given, recordAct: actRecorder(given) };
  return [
    ...eventRoutes(services),
    ...orderRoutes(services),
    ...hubRoutes(services),
    ...laneRoutes(services),
    ...kafkaRoutes(services),
    ...poolRoutes(services),
    ...projectionRoutes(services),
    ...storeRoutes(services),
    ...usageRoutes(services),
    ...auditTreeRoutes(services),
  ];
};
