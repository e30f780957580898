import { inspect } from 'node:util';

const REDACTED = '[redacted]';

/**
 * A secret value in memory (fleet-and-networks.md §1.9 rule 7). However it is printed, serialised or logged, it shows
 * as `[redacted]`; only `reveal` gives the bytes.
 */
export class Secret {
  readonly #bytes: Buffer;

  /** Takes a copy; the caller may overwrite its own. A text is taken as UTF-8. */
  constructor(value: Uint8Array | string) {
    this.#bytes = Buffer.from(typeof value === 'string' ? Buffer.from(value, 'utf8') : value);
  }

  get length(): number {
    return this.#bytes.length;
  }

  /** The value itself; not a copy, so that `wipe` reaches it. */
  reveal(): Uint8Array {
    return this.#bytes;
  }

  revealText(): string {
    return this.#bytes.toString('utf8');
  }

  /** Overwrites the value with zeros. */
  wipe(): void {
    this.#bytes.fill(0);
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}
