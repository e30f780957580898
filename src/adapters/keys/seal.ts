import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** AES-256-GCM with a random 12-byte nonce and a 16-byte tag, all parts base64url. */
export type Sealed = { readonly nonce: string; readonly ct: string; readonly tag: string };

/** Thrown when ciphertext, key or associated data do not belong together: nothing is returned then. */
export class SealBroken extends Error {
  override readonly name = 'SealBroken';
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** `aad` binds the ciphertext to what it belongs to; it must be given again to open it. */
export const seal = (key: Uint8Array, plaintext: Uint8Array, aad: string): Sealed => {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(aad, 'utf8'));
  const ct = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  return {
    nonce: nonce.toString('base64url'),
    ct: ct.toString('base64url'),
    tag: cipher.getAuthTag().toString('base64url'),
  };
};

export const unseal = (key: Uint8Array, sealed: Sealed, aad: string, what: string): Buffer => {
  try {
    const nonce = Buffer.from(sealed.nonce, 'base64url');
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(aad, 'utf8'));
    decipher.setAuthTag(Buffer.from(sealed.tag, 'base64url'));
    return Buffer.concat([decipher.update(Buffer.from(sealed.ct, 'base64url')), decipher.final()]);
  } catch (cause) {
    throw new SealBroken(`${what} was changed or does not belong here`, { cause });
  }
};
