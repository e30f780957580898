import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { AuditKeyFiles } from '../../app/audit/audit-keys.ts';
import { parseVkey, vkeyOf } from '../../app/audit/merkle/note.ts';
import {
  createPrivate,
  destroyFile,
  privateDirectory,
  readPrivate,
  removeStaleTemporaries,
} from './private-files.ts';
import { seal, unseal } from './seal.ts';

const storedAuditKey = z.strictObject({
  v: z.literal(1),
  vkey: z.string(),
  nonce: z.string(),
  ct: z.string(),
  tag: z.string(),
});

/**
 * One file (0600) per key pair, named by the id of its vkey: the private key (PKCS #8) sealed by the deployment's
 * key. All instances of a deployment share the directory. `origin` names the keys: `fulfillment-ledger/<store id>`.
 */
export const openAuditKeyFiles = async ({
  directory,
  kek,
  origin,
}: {
  /** Created with mode 0700. */
  readonly directory: string;
  /** 32 bytes: `DeploymentKeys.auditKek`. */
  readonly kek: Uint8Array;
  readonly origin: string;
}): Promise<AuditKeyFiles> => {
  await privateDirectory(directory);
  await removeStaleTemporaries(directory);
  const pathOf = (vkey: string): string => join(directory, `${parseVkey(vkey).keyId}.key`);
  return {
    place: directory,
    create: async () => {
      const { privateKey } = generateKeyPairSync('ed25519');
      const vkey = vkeyOf(origin, privateKey);
      const sealed = seal(kek, privateKey.export({ format: 'der', type: 'pkcs8' }), vkey);
      // Another key of the same 32-bit id would be as unlikely as it would be fatal.
      if (!(await createPrivate(pathOf(vkey), JSON.stringify({ v: 1, vkey, ...sealed }))))
        throw new Error(`there is a key ${parseVkey(vkey).keyId} already; try again`);
      return { vkey };
    },
    find: async (vkey) => {
      const path = pathOf(vkey);
      const content = await readPrivate(path);
      if (content === undefined) return undefined;
      const { v: _, vkey: stored, ...sealed } = storedAuditKey.parse(JSON.parse(content.toString('utf8')));
      return stored === vkey
        ? createPrivateKey({ key: unseal(kek, sealed, vkey, path), format: 'der', type: 'pkcs8' })
        : undefined;
    },
    destroy: (vkey) => destroyFile(pathOf(vkey)),
  };
};

/** Keys that live as long as the process: for specs and the simulation. */
export const memoryAuditKeyFiles = (origin: string): AuditKeyFiles => {
  const keys = new Map<string, KeyObject>();
  return {
    place: 'memory',
    create: async () => {
      const { privateKey } = generateKeyPairSync('ed25519');
      const vkey = vkeyOf(origin, privateKey);
      keys.set(vkey, privateKey);
      return { vkey };
    },
    find: async (vkey) => keys.get(vkey),
    destroy: async (vkey) => void keys.delete(vkey),
  };
};
