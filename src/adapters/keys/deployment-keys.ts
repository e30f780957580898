import { hkdfSync, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createPrivate, privateDirectory, readPrivate } from './private-files.ts';

/**
 * The keys of one deployment, all derived (HKDF-SHA-256) from one master key in the secrets directory. Every instance
 * on one event log has the same; `fingerprint` shows that they are, and nothing else.
 */
export type DeploymentKeys = {
  /** Hex; safe to store and show. */
  readonly fingerprint: string;
  /** Wraps the data key of every secret version. */
  readonly secretKek: Uint8Array;
  /** Wraps the keys of data subjects. */
  readonly subjectKek: Uint8Array;
  /** Seals the private keys that sign tree heads. */
  readonly auditKek: Uint8Array;
  /** Seals the private keys that sign console tickets. */
  readonly consoleKek: Uint8Array;
  /** For fingerprints of secret values. */
  readonly fingerprintKey: Uint8Array;
  /** For hashes of requests. */
  readonly requestHashKey: Uint8Array;
};

export const MASTER_KEY_FILE = 'deployment.key';
const KEY_BYTES = 32;

export class BadDeploymentKey extends Error {
  override readonly name = 'BadDeploymentKey';
}

/** Opens the directory, creating it (0700) and the master key (0600) on the first start. */
export const openDeploymentKeys = async (directory: string): Promise<DeploymentKeys> => {
  await privateDirectory(directory);
  const path = join(directory, MASTER_KEY_FILE);
  let stored = await readPrivate(path);
  if (stored === undefined) {
    await createPrivate(path, `${randomBytes(KEY_BYTES).toString('hex')}\n`);
    stored = await readPrivate(path);
  }
  const text = stored?.toString('utf8').trim() ?? '';
  if (!/^[0-9a-f]{64}$/.test(text))
    throw new BadDeploymentKey(`${path} does not hold a key: restore it from its backup`);
  return deriveDeploymentKeys(Buffer.from(text, 'hex'));
};

/** `master`: 32 random bytes. */
export const deriveDeploymentKeys = (master: Uint8Array): DeploymentKeys => {
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', master, '', `fulfillment-ledger/${purpose}/1`, KEY_BYTES));
  return {
    fingerprint: derive('fingerprint').subarray(0, 16).toString('hex'),
    secretKek: derive('secret-kek'),
    subjectKek: derive('subject-kek'),
    auditKek: derive('audit-kek'),
    consoleKek: derive('console-kek'),
    fingerprintKey: derive('secret-fingerprint'),
    requestHashKey: derive('request-hash'),
  };
};
