import { RETENTION_ID } from '../../domain/audit/retention.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { streamName } from '../../domain/stream-name.ts';
import type { EventStore } from '../log/event-store.ts';

/**
 * Which ids may stand in events in clear. What somebody has only typed may be anybody's name, and no erasure would reach it;
 * what the service itself made, or what names something that is there, tells nothing that is not told already.
 */
export type KnownIds = (asked: {
  readonly kind: string;
  readonly id: string;
  /** In whose history it is to stand; '': the provider's. */
  readonly tenant: string;
}) => Promise<boolean>;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** SHA-256 and the like: reserved names. */
const DIGEST = /^[0-9a-f]{64}$/;

/** Whether an id has a form that the service itself makes. */
export const isMadeHere = (id: string): boolean => UUID.test(id) || DIGEST.test(id) || id === RETENTION_ID;

/** What names of streams begin with. */
const CATEGORY = /^[a-z][a-zA-Z0-9]*$/;

/** Of whose things every tenant knows. */
const SHARED = 'shared';

/**
 * Looks into the log. Things of other tenants are as absent there as they were in the answer: otherwise the record would
 * tell what the answer did not.
 */
export const createKnownIds =
  (store: Pick<EventStore, 'readStream'>): KnownIds =>
  async ({ kind, id, tenant }) => {
    if (isMadeHere(id)) return true;
    if (id === '' || !CATEGORY.test(kind)) return false;
    for await (const { metadata } of store.readStream(streamName(kind, id), { limit: 1 })) {
      const owner = stringAt(metadata, 'tenant');
      return tenant === '' || owner === tenant || owner === SHARED;
    }
    return false;
  };
