import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { LRUCache } from 'lru-cache';
import type { KeyStore } from '../../app/ports.ts';
import {
  createPrivate,
  destroyFile,
  privateDirectory,
  readPrivate,
  removeStaleTemporaries,
} from './private-files.ts';
import { seal, unseal } from './seal.ts';
import { storedSubjectKey, subjectKeyPath } from './subject-key-reader.ts';
import { createSubjectKeyStore, type SubjectKey } from './subject-keys.ts';

/** Milliseconds that a key is used for encryption without looking at its file again. */
const RECALL_MS = 60_000;

/**
 * One file (0600) per data subject, holding its key wrapped by the deployment's key. All instances of a deployment
 * share the directory. Destroying a key overwrites and removes the file.
 */
export const openFileKeyStore = async ({
  directory,
  kek,
  cacheSize = 10_000,
}: {
  /** Created with mode 0700. */
  directory: string;
  /** 32 bytes: `DeploymentKeys.subjectKek`. */
  kek: Uint8Array;
  /** Keys kept in memory for encryption; default 10,000. */
  cacheSize?: number;
}): Promise<KeyStore> => {
  await privateDirectory(directory);
  await removeStaleTemporaries(directory);
  const recalled = new LRUCache<string, SubjectKey>({
    maxSize: cacheSize,
    sizeCalculation: () => 1,
    ttl: RECALL_MS,
  });
  const pathOf = (subjectId: string): string => subjectKeyPath(directory, subjectId);

  return createSubjectKeyStore({
    recall: (subjectId) => recalled.get(subjectId),
    find: async (subjectId) => {
      const content = await readPrivate(pathOf(subjectId));
      if (content === undefined) {
        recalled.delete(subjectId);
        return undefined;
      }
      const { keyId, ...sealed } = storedSubjectKey.parse(JSON.parse(content.toString('utf8')));
      const key = { keyId, key: unseal(kek, sealed, keyId, `the key of subject ${subjectId}`) };
      recalled.set(subjectId, key);
      return key;
    },
    create: async (subjectId, key) => {
      const path = pathOf(subjectId);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const content = JSON.stringify({ v: 1, keyId: key.keyId, ...seal(kek, key.key, key.keyId) });
      const created = await createPrivate(path, content);
      if (created) recalled.set(subjectId, key);
      return created;
    },
    destroy: async (subjectId) => {
      recalled.delete(subjectId);
      await destroyFile(pathOf(subjectId));
    },
  });
};
