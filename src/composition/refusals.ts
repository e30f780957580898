import type { DeploymentKeys } from '../adapters/keys/deployment-keys.ts';
import { createDayJournal } from '../app/audit/day-journal.ts';
import { createKnownIds } from '../app/audit/known-ids.ts';
import { createRefusalRecorder, type RefusalRecorder } from '../app/audit/refusal-recorder.ts';
import { createEventCodec } from '../app/log/event-codec.ts';
import type { EventStore } from '../app/log/event-store.ts';
import type { KeyStore, Runtime } from '../app/ports.ts';
import { createRequestHash } from '../app/commands/request-hash.ts';
import type { PersonalMetadata } from '../app/tenancy/subjects.ts';
import { auditEventTypes } from '../domain/audit/event-types.ts';

/** The record of refusals on this instance's own ports. */
export const openRefusals = ({
  keys,
  keyStore,
  store,
  ...ports
}: {
  readonly store: EventStore;
  readonly keys: Pick<DeploymentKeys, 'requestHashKey'>;
  readonly keyStore: Pick<KeyStore, 'encrypt'>;
  readonly personal: Pick<PersonalMetadata, 'personal' | 'source'>;
} & Runtime): RefusalRecorder =>
  createRefusalRecorder({
    ...ports,
    journal: createDayJournal(store),
    codec: createEventCodec(auditEventTypes),
    requestHash: createRequestHash(keys.requestHashKey),
    conceal: keyStore.encrypt,
    knownIds: createKnownIds(store),
  });
