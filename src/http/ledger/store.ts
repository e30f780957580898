import type { EventStore } from '../../app/log/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ApiError } from '../errors.ts';
import type { Positions } from '../positions.ts';
import type { ActServices } from './acts.ts';
import { fieldsOf, readBody } from './forms.ts';
import type { LedgerRoute } from './serve.ts';
import { BACKUP_BODY } from './upkeep-operations.ts';

export type StoreServices = ActServices & {
  readonly store: EventStore;
  readonly positions: Positions;
  readonly storeInfo?: () => Promise<JsonObject>;
  /** Copies the running store to a file on this machine; absent where the adapter cannot. */
  readonly backupStore?: (file: string) => Promise<{ readonly file: string; readonly bytes: number }>;
  /** Checks the running store as far as that goes without stopping it. */
  readonly checkStore?: () => Promise<{ readonly events: number; readonly findings: readonly string[] }>;
};

export const storeRoutes = (services: StoreServices): readonly LedgerRoute[] => [
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
