import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { subjectIdOf } from '../log/identifiers.ts';
import type { Encrypted, PersonalData, RequestSource } from '../log/metadata.ts';
import type { KeyStore } from '../ports.ts';

export { subjectIdOf };
export type { PersonalData, RequestSource };

const TTL_RESOLUTION_MS = 1_000;

/**
 * Encrypts what metadata holds of a person. The same person and text give the same
 * ciphertext again for as long as it is remembered, so that a request costs a look into a map, not AES. Forgotten or
 * erased, the next command encrypts anew.
 */
export type PersonalMetadata = {
  /** Undefined when there is nothing to keep. */
  personal(subjectId: string, data: PersonalData): Promise<Encrypted | undefined>;
  source(subjectId: string, source: RequestSource): Promise<Encrypted | undefined>;
  /** Destroys the subject's key and forgets its ciphertexts: what was stored can never be read again. */
  erase(subjectId: string): Promise<void>;
  /** The fields again; the marker when the key was destroyed. */
  read(value: Encrypted): Promise<PersonalData | RequestSource | { readonly erased: true }>;
};

export const createPersonalMetadata = ({
  keys,
  cacheSize = 10_000,
  ttlMs = 15 * 60_000,
}: {
  keys: KeyStore;
  /** Ciphertexts remembered; default 10,000 (about 0.5 kB each). */
  cacheSize?: number;
  /** Milliseconds that a ciphertext is used again; default 15 minutes, so that an erasure elsewhere is noticed. */
  ttlMs?: number;
}): PersonalMetadata => {
  const cache = new LRUCache<string, { subjectId: string; encrypted: Promise<Encrypted> }>({
    // Counted by size: `max` would take the room for all of them at once.
    maxSize: cacheSize,
    sizeCalculation: () => 1,
    ttl: ttlMs,
    // Default 1 ms: the time is asked for, and a timer set, as often.
    ttlResolution: TTL_RESOLUTION_MS,
  });

  const encrypt = async (
    subjectId: string,
    data: PersonalData | RequestSource,
  ): Promise<Encrypted | undefined> => {
    const text = JSON.stringify(data);
    if (text === '{}') return undefined;
    // The plaintext itself is not kept.
    const id = hash('sha256', `${subjectId}\n${text}`, 'base64');
    const known = cache.get(id);
    if (known !== undefined) return known.encrypted;
    const encrypted = keys.encrypt(subjectId, text);
    cache.set(id, { subjectId, encrypted });
    encrypted.catch(() => cache.delete(id));
    return encrypted;
  };

  return {
    personal: encrypt,
    source: encrypt,
    erase: async (subjectId) => {
      await keys.destroy(subjectId);
      for (const [id, entry] of cache.entries()) if (entry.subjectId === subjectId) cache.delete(id);
    },
    read: async (value) => {
      const text = await keys.decrypt(value);
      return text === undefined ? { erased: true } : (JSON.parse(text) as PersonalData | RequestSource);
    },
  };
};
