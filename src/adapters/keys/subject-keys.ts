import { randomBytes } from 'node:crypto';
import type { Encrypted } from '../../app/log/metadata.ts';
import type { KeyStore } from '../../app/ports.ts';
import { subjectOf } from '../../domain/personal.ts';
import { seal, unseal } from './seal.ts';

/** The current key of a data subject. `keyId` is `<subject id>.<generation>`: a key made after an erasure is another. */
export type SubjectKey = { readonly keyId: string; readonly key: Uint8Array };

/** Where subject keys are kept; the encryption itself is the same everywhere. */
export type SubjectKeyPlace = {
  /** Never from a cache: an erasure by another instance counts at once. */
  find(subjectId: string): Promise<SubjectKey | undefined>;
  /** Undefined when there is a key already (another instance was faster). */
  create(subjectId: string, key: SubjectKey): Promise<boolean>;
  /** For `encrypt` only: may be up to a minute old. */
  recall?(subjectId: string): SubjectKey | undefined;
  destroy(subjectId: string): Promise<void>;
};

const KEY_BYTES = 32;
/** Subject ids are UUIDs or fixed words such as `system`: anything else must not reach a file name. */
const SUBJECT_ID = /^[A-Za-z0-9-]{1,100}$/;

export const createSubjectKeyStore = (place: SubjectKeyPlace): KeyStore => {
  const keyOf = async (subjectId: string): Promise<SubjectKey> => {
    for (;;) {
      const known = place.recall?.(subjectId) ?? (await place.find(subjectId));
      if (known !== undefined) return known;
      const generation = randomBytes(8).toString('hex');
      const fresh = { keyId: `${subjectId}.${generation}`, key: randomBytes(KEY_BYTES) };
      if (await place.create(subjectId, fresh)) return fresh;
    }
  };

  return {
    encrypt: async (subjectId, plaintext) => {
      assertSubjectId(subjectId);
      const { keyId, key } = await keyOf(subjectId);
      return { alg: 'A256GCM', keyId, ...seal(key, Buffer.from(plaintext, 'utf8'), keyId) };
    },
    decrypt: async (value: Encrypted) => {
      const { keyId } = value;
      const subjectId = subjectOf(value);
      if (!isSubjectId(subjectId)) return undefined;
      const current = await place.find(subjectId);
      if (current?.keyId !== keyId) return undefined;
      return unseal(current.key, value, keyId, 'personal data').toString('utf8');
    },
    has: async (subjectId) => isSubjectId(subjectId) && (await place.find(subjectId)) !== undefined,
    destroy: async (subjectId) => {
      assertSubjectId(subjectId);
      await place.destroy(subjectId);
    },
  };
};

export const isSubjectId = (subjectId: string): boolean => SUBJECT_ID.test(subjectId);

const assertSubjectId = (subjectId: string): void => {
  if (!isSubjectId(subjectId)) throw new TypeError('a subject id consists of letters, digits and hyphens');
};
