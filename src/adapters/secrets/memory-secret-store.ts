import type { SecretStore } from '../../app/ports.ts';
import type { DeploymentKeys } from '../keys/deployment-keys.ts';
import { createSealedSecretStore, type Envelope } from './sealed-secrets.ts';

/** Secrets in memory, encrypted all the same, for specs and the simulation. */
export const createMemorySecretStore = ({
  keys,
  now,
  envelopes = new Map<string, Envelope>(),
}: {
  keys: Pick<DeploymentKeys, 'secretKek' | 'fingerprintKey'>;
  /** ISO time. */
  now: () => string;
  /** Give the same map to several stores to let them share it, as instances share a directory. */
  envelopes?: Map<string, Envelope>;
}): SecretStore =>
  createSealedSecretStore({
    kek: keys.secretKek,
    fingerprintKey: keys.fingerprintKey,
    now,
    place: {
      write: async (envelope) => void envelopes.set(keyOf(envelope.id, envelope.version), envelope),
      read: async (id, version) => envelopes.get(keyOf(id, version)),
      remove: async (id, version) => void envelopes.delete(keyOf(id, version)),
      async *all() {
        yield* envelopes.values();
      },
    },
  });

const keyOf = (id: string, version: string): string => JSON.stringify([id, version]);
