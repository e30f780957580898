import { createHash } from 'node:crypto';
import { mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { SecretStore } from '../../app/ports.ts';
import { SECRET_KINDS } from '../../domain/secret-ref.ts';
import type { DeploymentKeys } from '../keys/deployment-keys.ts';
import {
  privateDirectory,
  readPrivate,
  removeFile,
  removeStaleTemporaries,
  writePrivate,
} from '../keys/private-files.ts';
import { SealBroken } from '../keys/seal.ts';
import { createSealedSecretStore, type Envelope } from './sealed-secrets.ts';

const sealed = z.strictObject({ nonce: z.string(), ct: z.string(), tag: z.string() });
const envelopeFile = z.strictObject({
  v: z.literal(1),
  id: z.string(),
  version: z.string(),
  kind: z.enum(SECRET_KINDS),
  tenant: z.string(),
  storedAt: z.string(),
  kekId: z.string(),
  kekVersion: z.literal(1),
  wrappedKey: sealed,
  value: sealed,
});

/** One envelope file (0600) per secret version; ids of any form are safe, for file names are hashes. */
export const openFileSecretStore = async ({
  directory,
  keys,
  now,
}: {
  /** Created with mode 0700. */
  directory: string;
  keys: Pick<DeploymentKeys, 'secretKek' | 'fingerprintKey'>;
  /** ISO time. */
  now: () => string;
}): Promise<SecretStore> => {
  await privateDirectory(directory);
  await removeStaleTemporaries(directory);
  const pathOf = (id: string, version: string): string => {
    const hash = createHash('sha256')
      .update(JSON.stringify([id, version]))
      .digest('hex');
    return join(directory, hash.slice(0, 2), `${hash}.json`);
  };
  const readEnvelope = async (path: string): Promise<Envelope | undefined> => {
    const content = await readPrivate(path);
    if (content === undefined) return undefined;
    try {
      return envelopeFile.parse(JSON.parse(content.toString('utf8')));
    } catch (cause) {
      throw new SealBroken('the envelope file cannot be read', { cause });
    }
  };

  return createSealedSecretStore({
    kek: keys.secretKek,
    fingerprintKey: keys.fingerprintKey,
    now,
    place: {
      write: async (envelope) => {
        const path = pathOf(envelope.id, envelope.version);
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await writePrivate(path, JSON.stringify(envelope));
      },
      read: (id, version) => readEnvelope(pathOf(id, version)),
      remove: (id, version) => removeFile(pathOf(id, version)),
      async *all() {
        for (const folder of await readdir(directory, { withFileTypes: true })) {
          if (!folder.isDirectory()) continue;
          for (const name of await readdir(join(directory, folder.name))) {
            if (!name.endsWith('.json')) continue;
            const envelope = await readEnvelope(join(directory, folder.name, name)).catch(ignoreBroken);
            if (envelope !== undefined) yield envelope;
          }
        }
      },
    },
  });
};

/** A broken envelope stays where it is: whoever reveals it is told. */
const ignoreBroken = (error: unknown): undefined => {
  if (!(error instanceof SealBroken)) throw error;
};
