import type { KeyObject } from 'node:crypto';
import type { EventStore, ExpectedRevision } from '../log/event-store.ts';
import { WrongExpectedRevision } from '../log/event-store.ts';
import { createBookkeeping } from '../log/bookkeeping.ts';
import type { Runtime } from '../ports.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { signRotation, type ChainedKey } from './merkle/key-chain.ts';
import { parseVkey } from './merkle/note.ts';

/** Key pairs (Ed25519) that sign tree heads, each under its vkey. Private keys leave it only to sign. */
export type AuditKeyFiles = {
  /** Makes a key pair and keeps it. */
  create(): Promise<{ readonly vkey: string }>;
  /** The private key; undefined when it is not (or no longer) here. */
  find(vkey: string): Promise<KeyObject | undefined>;
  /** Nothing happens when there is none. */
  destroy(vkey: string): Promise<void>;
  /** Where they are kept, for messages. */
  readonly place: string;
};

export type SigningKey = {
  readonly vkey: string;
  readonly keyId: string;
  readonly privateKey: KeyObject;
};

export type AuditKeys = {
  /** All keys that ever signed, oldest first: what trust.json holds. */
  chain(signal?: AbortSignal): Promise<readonly ChainedKey[]>;
  /** The key that signs now; the first one is made when there is none. Throws AuditKeyMissing. */
  current(): Promise<SigningKey>;
  /**
   * Replaces the key: the new one is announced in a note of the present one, which is destroyed then. `lost`: when the
   * present one is gone for good, a key that nothing announces begins; auditors have to be told to trust it.
   */
  rotate(how?: { readonly lost?: boolean }): Promise<ChainedKey>;
};

/** The log names a key that this deployment does not have: another secrets directory, or a lost file. */
export class AuditKeyMissing extends Error {
  override readonly name = 'AuditKeyMissing';
  constructor(keyId: string, place: string) {
    super(
      `the private audit key ${keyId}, which this log names as its newest, is not in ${place}: restore it from its backup`,
    );
  }
}

export const AUDIT_KEYS_STREAM = 'sys-auditKeys';

/**
 * The log says which key signs: of two instances that make or replace one at the same time, one appends, and the
 * other throws its own away. A key whose announcement was never stored is never used.
 */
export const createAuditKeys = ({
  store,
  files,
  origin,
  clock,
  ids,
  instance,
  treeSize,
}: {
  readonly store: EventStore;
  readonly files: AuditKeyFiles;
  /** Leaves of the audit tree here: a key that is replaced vouches for nothing beyond them. */
  readonly treeSize?: () => number;
  readonly origin: string;
} & Pick<Runtime, 'clock' | 'ids' | 'instance'>): AuditKeys => {
  const bookkeeping = createBookkeeping(instance);
  /** Chains whose older keys were destroyed already, by their newest key. */
  let tidied: string | undefined;

  const load = async (
    signal?: AbortSignal,
  ): Promise<{ keys: readonly ChainedKey[]; revision: ExpectedRevision }> => {
    const keys: ChainedKey[] = [];
    let revision: ExpectedRevision = 'no_stream';
    for await (const event of store.readStream(AUDIT_KEYS_STREAM, signal === undefined ? {} : { signal })) {
      ({ revision } = event);
      const rotation = stringAt(event.data, 'rotation');
      keys.push({
        vkey: stringAt(event.data, 'vkey'),
        since: stringAt(event.data, 'at'),
        ...(rotation !== '' && { rotation }),
      });
    }
    return { keys, revision };
  };

  /** Returns false when another instance was first. */
  const announce = async (key: ChainedKey, revision: ExpectedRevision, command: string): Promise<boolean> => {
    const { vkey, since, rotation } = key;
    const data = { at: since, vkey, ...(rotation !== undefined && { rotation }) };
    const event = bookkeeping(AUDIT_KEYS_STREAM, { type: 'AuditKeyAdded', data }, command, ids.uuidv7());
    try {
      await store.append(AUDIT_KEYS_STREAM, revision, [event]);
      return true;
    } catch (error) {
      if (!(error instanceof WrongExpectedRevision)) throw error;
      await files.destroy(vkey);
      return false;
    }
  };

  const signingKey = async ({ vkey }: ChainedKey): Promise<SigningKey> => {
    const { keyId } = parseVkey(vkey);
    const privateKey = await files.find(vkey);
    if (privateKey === undefined) throw new AuditKeyMissing(keyId, files.place);
    return { vkey, keyId, privateKey };
  };

  /** A rotation that was cut off may have left the key that it replaced. */
  const tidy = async (keys: readonly ChainedKey[]): Promise<void> => {
    const newest = keys.at(-1)?.vkey;
    if (newest === tidied) return;
    for (const { vkey } of keys.slice(0, -1)) await files.destroy(vkey);
    tidied = newest;
  };

  return {
    chain: async (signal) => (await load(signal)).keys,
    current: async () => {
      let { keys, revision } = await load();
      if (keys.length === 0) {
        const { vkey } = await files.create();
        await announce({ vkey, since: clock.now() }, revision, 'CreateAuditKey');
        ({ keys, revision } = await load());
      }
      const key = await signingKey(keys.at(-1) as ChainedKey);
      await tidy(keys);
      return key;
    },
    rotate: async ({ lost = false } = {}) => {
      const { keys, revision } = await load();
      const newest = keys.at(-1);
      const previous =
        newest === undefined || (lost && (await files.find(newest.vkey)) === undefined)
          ? undefined
          : await signingKey(newest);
      const { vkey } = await files.create();
      const since = clock.now();
      // Heads that the present key may just be signing have no more leaves than the log, and so than the tree.
      const stated = { vkey, since, ...(treeSize && { size: treeSize() }) };
      const next: ChainedKey =
        previous === undefined
          ? { vkey, since }
          : { vkey, since, rotation: signRotation(origin, stated, { name: origin, ...previous }) };
      if (!(await announce(next, revision, 'RotateAuditKey'))) throw new AuditKeyReplaced();
      await tidy([...keys, next]);
      return next;
    },
  };
};

/** Somebody else replaced the key at the same time; theirs is in force. */
export class AuditKeyReplaced extends Error {
  override readonly name = 'AuditKeyReplaced';
  constructor() {
    super('the audit key was replaced by somebody else at the same time; that key is in force');
  }
}
