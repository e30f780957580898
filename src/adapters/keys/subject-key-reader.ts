import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isSubjectId } from './subject-keys.ts';
import { unseal } from './seal.ts';
import { subjectOf, type Encrypted, type OpenPersonal } from '../../domain/personal.ts';

/** The file of one subject's key, wrapped by the deployment's key. */
export const storedSubjectKey = z.strictObject({
  v: z.literal(1),
  keyId: z.string(),
  nonce: z.string(),
  ct: z.string(),
  tag: z.string(),
});

export const subjectKeyPath = (directory: string, subjectId: string): string =>
  join(directory, subjectId.slice(0, 2), `${subjectId}.json`);

/**
 * Opens personal values with the keys in the directory of `openFileKeyStore`, synchronously: read models are rendered
 * on threads where nothing may wait. A key is read for each call and kept by none, so that its destruction counts at
 * once. Throws SealBroken for what was tampered with.
 */
export const openSubjectKeyReader = ({
  directory,
  kek,
}: {
  readonly directory: string;
  /** 32 bytes: `DeploymentKeys.subjectKek`. */
  readonly kek: Uint8Array;
}): OpenPersonal =>
  openWith((subjectId) => {
    const content = readIfThere(subjectKeyPath(directory, subjectId));
    if (content === undefined) return undefined;
    const { keyId, ...sealed } = storedSubjectKey.parse(JSON.parse(content));
    return { keyId, key: unseal(kek, sealed, keyId, `the key of subject ${subjectId}`) };
  });

/** The same over keys from anywhere. */
export const openWith =
  (
    find: (subjectId: string) => { readonly keyId: string; readonly key: Uint8Array } | undefined,
  ): OpenPersonal =>
  (values) => {
    const keys = new Map<string, ReturnType<typeof find>>();
    const open = (value: Encrypted): string | undefined => {
      const subjectId = subjectOf(value);
      if (!isSubjectId(subjectId)) return undefined;
      if (!keys.has(subjectId)) keys.set(subjectId, find(subjectId));
      const current = keys.get(subjectId);
      if (current?.keyId !== value.keyId) return undefined;
      return unseal(current.key, value, value.keyId, 'personal data').toString('utf8');
    };
    return values.map(open);
  };

const readIfThere = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
};
