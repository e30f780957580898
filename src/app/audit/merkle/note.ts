import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import { fromBase64 } from './base64.ts';
import { sha256 } from './hashing.ts';

/**
 * C2SP signed-note with Ed25519 (signature type 0x01): a text, an empty line and lines `— <key name> <base64>`.
 * A verifier key (vkey) is `<name>+<key id, 8 hex digits>+<base64 of type and public key>`.
 */
const ED25519 = 0x01;
const PUBLIC_KEY_BYTES = 32;
const KEY_ID_BYTES = 4;
const SIGNATURE_LINE = /^\u2014 (\S+) (\S+)$/;
/** Bounds of what is looked at before any key has been checked. */
const MOST_SIGNATURES = 100;
const MOST_CHARACTERS = 1024 * 1024;

export class InvalidNote extends Error {
  override readonly name = 'InvalidNote';
}

export type NoteSigner = { readonly name: string; readonly privateKey: KeyObject };

export type VerifiedNote = {
  /** What was signed, its last newline included. */
  readonly text: string;
  /** The vkeys whose signatures were found and are right, in the order of the note. */
  readonly signers: readonly string[];
};

/** Signs a text, which must end in a newline. Throws InvalidNote for a text or a name that no note can have. */
export const signNote = (text: string, ...signers: readonly NoteSigner[]): string => {
  if (!text.endsWith('\n')) throw new InvalidNote('the text of a note ends in a newline');
  refuseControls(text);
  const bytes = Buffer.from(text, 'utf8');
  const lines = signers.map(({ name, privateKey }) => {
    const signature = sign(null, bytes, privateKey);
    const id = keyId(assertName(name), rawPublicKey(createPublicKey(privateKey)));
    return `\u2014 ${name} ${Buffer.concat([id, signature]).toString('base64')}\n`;
  });
  return `${text}\n${lines.join('')}`;
};

/**
 * The text of a note that at least one of these keys signed. Signatures of other keys are passed over, but a wrong
 * one of a known key refuses the whole note. Throws InvalidNote.
 */
export const verifyNote = (note: string, vkeys: readonly string[]): VerifiedNote => {
  const { text, signatures } = splitNote(note);
  const known = new Map(vkeys.map((vkey) => [identity(vkey), { vkey, key: parseVkey(vkey) }]));
  const signers = new Set<string>();
  for (const { name, id, signature } of signatures) {
    const found = known.get(`${name}+${id.toString('hex')}`);
    if (found === undefined) continue;
    if (!verify(null, Buffer.from(text, 'utf8'), found.key.publicKey, signature))
      throw new InvalidNote(
        `the signature of ${name} is wrong: the text was changed, or another key signed it`,
      );
    signers.add(found.vkey);
  }
  if (signers.size === 0) throw new InvalidNote('none of the keys that are trusted has signed the note');
  return { text, signers: [...signers] };
};

type Signature = { readonly name: string; readonly id: Buffer; readonly signature: Buffer };

/** Text and signatures of a note, nothing of it checked yet. Throws InvalidNote. */
export const splitNote = (note: string): { text: string; signatures: readonly Signature[] } => {
  if (note.length > MOST_CHARACTERS) throw new InvalidNote('the note is too long');
  refuseControls(note);
  const at = note.lastIndexOf('\n\n');
  if (at < 0 || !note.endsWith('\n'))
    throw new InvalidNote('not a note: it takes text, an empty line and signature lines');
  const lines = note.slice(at + 2, -1).split('\n');
  if (lines.length > MOST_SIGNATURES) throw new InvalidNote('the note has too many signatures');
  return { text: note.slice(0, at + 1), signatures: lines.map(parseSignature) };
};

const parseSignature = (line: string): Signature => {
  const [, name = '', encoded = ''] = SIGNATURE_LINE.exec(line) ?? [];
  const bytes = fromBase64(encoded);
  if (name === '' || name.includes('+') || bytes === undefined || bytes.length <= KEY_ID_BYTES)
    throw new InvalidNote('a signature line of the note cannot be read');
  return { name, id: bytes.subarray(0, KEY_ID_BYTES), signature: bytes.subarray(KEY_ID_BYTES) };
};

/** The vkey of a public (or private) Ed25519 key under a name. */
export const vkeyOf = (name: string, key: KeyObject): string => {
  const raw = rawPublicKey(key.type === 'private' ? createPublicKey(key) : key);
  const encoded = Buffer.concat([Buffer.of(ED25519), raw]).toString('base64');
  return `${assertName(name)}+${keyId(name, raw).toString('hex')}+${encoded}`;
};

export type ParsedVkey = { readonly name: string; readonly keyId: string; readonly publicKey: KeyObject };

/** Throws InvalidNote for what is no vkey of Ed25519, or has another id than its key. */
export const parseVkey = (vkey: string): ParsedVkey => {
  // Base64 may hold a plus, a name may not.
  const [, name = '', id = '', encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? [];
  const bytes = fromBase64(encoded);
  if (bytes?.length !== PUBLIC_KEY_BYTES + 1 || bytes[0] !== ED25519)
    throw new InvalidNote('not a verifier key: it takes <name>+<key id>+<base64 of an Ed25519 key>');
  const raw = bytes.subarray(1);
  if (keyId(assertName(name), raw).toString('hex') !== id)
    throw new InvalidNote(`the verifier key of ${name} has another id than its key`);
  const publicKey = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') },
    format: 'jwk',
  });
  return { name, keyId: id, publicKey };
};

/** Name and key id together tell which key a signature is of. */
const identity = (vkey: string): string => vkey.split('+').slice(0, 2).join('+');

const keyId = (name: string, raw: Uint8Array): Buffer =>
  sha256(Buffer.concat([Buffer.from(`${name}\n`, 'utf8'), Buffer.of(ED25519), raw])).subarray(
    0,
    KEY_ID_BYTES,
  );

const rawPublicKey = (key: KeyObject): Buffer => {
  const { x } = key.asymmetricKeyType === 'ed25519' ? key.export({ format: 'jwk' }) : {};
  if (x === undefined) throw new InvalidNote('notes are signed with Ed25519 keys');
  return Buffer.from(x, 'base64url');
};

const assertName = (name: string): string => {
  if (!/^[^\s+]+$/u.test(name))
    throw new InvalidNote(`"${name}" cannot name a key: no spaces, no plus, not empty`);
  refuseControls(name);
  return name;
};

/** Notes hold no ASCII control characters but newlines, and are well-formed Unicode. */
const refuseControls = (text: string): void => {
  // oxlint-disable-next-line no-control-regex -- these are what the format forbids
  if (/[\u0000-\u0009\u000b-\u001f]/.test(text) || !text.isWellFormed())
    throw new InvalidNote('a note holds no control characters and no broken Unicode');
};
