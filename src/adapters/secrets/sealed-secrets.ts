import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { SecretStore } from '../../app/ports.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import { SealBroken, seal, unseal, type Sealed } from '../keys/seal.ts';

/**
 * Envelope encryption of secret values, independent of where the envelopes are
 * kept: a data key per version, AES-256-GCM, bound by its associated data to id, version, tenant and kind.
 */
export type Envelope = {
  readonly v: 1;
  readonly id: string;
  readonly version: string;
  readonly kind: SecretRef['kind'];
  readonly tenant: string;
  readonly storedAt: string;
  /** Which key wraps the data key; a rotation only wraps anew. */
  readonly kekId: string;
  readonly kekVersion: 1;
  readonly wrappedKey: Sealed;
  readonly value: Sealed;
};

export type EnvelopePlace = {
  write(envelope: Envelope): Promise<void>;
  /** Throws SealBroken when what is there is no envelope. */
  read(id: string, version: string): Promise<Envelope | undefined>;
  remove(id: string, version: string): Promise<void>;
  all(): AsyncIterable<Pick<Envelope, 'id' | 'version' | 'storedAt'>>;
};

/** The value was changed, moved to another id or tenant, or wrapped by another key. */
export class SecretTampered extends Error {
  override readonly name = 'SecretTampered';
  constructor(ref: Pick<SecretRef, 'id' | 'version'>, options?: ErrorOptions) {
    super(`secret ${ref.id} (version ${ref.version}) was changed or does not belong here`, options);
  }
}

const KEY_BYTES = 32;

export const createSealedSecretStore = ({
  place,
  kek,
  fingerprintKey,
  now,
}: {
  place: EnvelopePlace;
  kek: Uint8Array;
  fingerprintKey: Uint8Array;
  /** ISO time. */
  now: () => string;
}): SecretStore => {
  const fingerprint = (value: Uint8Array): string =>
    createHmac('sha256', fingerprintKey).update(value).digest('hex').slice(0, 16);
  const kekId = createHmac('sha256', kek).update('kek-id').digest('hex').slice(0, 16);

  return {
    put: async ({ id, version, kind, tenant, value }) => {
      const dataKey = randomBytes(KEY_BYTES);
      const aad = aadOf(id, version, tenant, kind);
      await place.write({
        v: 1,
        id,
        version,
        kind,
        tenant,
        storedAt: now(),
        kekId,
        kekVersion: 1,
        wrappedKey: seal(kek, dataKey, `dek|${aad}`),
        value: seal(dataKey, value, aad),
      });
      dataKey.fill(0);
      return { id, version, kind, fingerprint: fingerprint(value) };
    },
    reveal: async (ref, tenant) => {
      // From the reference and the caller, not from the envelope: a swapped one must not open.
      const aad = aadOf(ref.id, ref.version, tenant, ref.kind);
      let value: Buffer;
      try {
        const envelope = await place.read(ref.id, ref.version);
        if (envelope === undefined) return undefined;
        const dataKey = unseal(kek, envelope.wrappedKey, `dek|${aad}`, 'the data key');
        value = unseal(dataKey, envelope.value, aad, 'the value');
        dataKey.fill(0);
      } catch (cause) {
        if (cause instanceof SealBroken) throw new SecretTampered(ref, { cause });
        throw cause;
      }
      const actual = Buffer.from(fingerprint(value));
      const wanted = Buffer.from(ref.fingerprint);
      if (actual.length !== wanted.length || !timingSafeEqual(actual, wanted)) throw new SecretTampered(ref);
      return value;
    },
    remove: ({ id, version }) => place.remove(id, version),
    list: () => place.all(),
  };
};

/** `id|version|tenant|kind`, each part encoded so that none can hold the separator. */
const aadOf = (id: string, version: string, tenant: string, kind: string): string =>
  [id, version, tenant, kind].map(encodeURIComponent).join('|');
