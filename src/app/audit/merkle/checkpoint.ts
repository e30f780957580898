import { fromBase64 } from './base64.ts';
import { isHash } from './hashing.ts';

/**
 * C2SP tlog-checkpoint: origin, size and root of the tree, then our extension lines
 * `tenants <count> <root>`, `position <store position>` and `time <ISO>`. It is the text of a signed note.
 */
export type Checkpoint = {
  /** `fulfillment-ledger/<store id>`; also the name of the keys that sign it. */
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
  /** The tree over the trees of all tenants: see tenants.ts. */
  readonly tenants: { readonly count: number; readonly root: Buffer };
  /** Store position of the last leaf; `-` before the first. */
  readonly position: string;
  /** When it was signed, by the clock of the signer (ISO, UTC). */
  readonly time: string;
};

export class InvalidCheckpoint extends Error {
  override readonly name = 'InvalidCheckpoint';
}

export const originOf = (storeId: string): string => `fulfillment-ledger/${storeId}`;

export const checkpointText = ({ origin, size, root, tenants, position, time }: Checkpoint): string =>
  [
    origin,
    size,
    root.toString('base64'),
    `tenants ${tenants.count} ${tenants.root.toString('base64')}`,
    `position ${position}`,
    `time ${time}`,
    '',
  ].join('\n');

const NUMBER = '(0|[1-9][0-9]{0,15})';
const SHAPE = new RegExp(
  `^([^\\s+]+)\n${NUMBER}\n(\\S+)\ntenants ${NUMBER} (\\S+)\nposition (\\S{1,64})\n` +
    'time (\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,9})?Z)\n$',
  'u',
);

/** Throws InvalidCheckpoint for every text that `checkpointText` does not write. */
export const parseCheckpoint = (text: string): Checkpoint => {
  const [, origin = '', size = '', root = '', count = '', tenantsRoot = '', position = '', time = ''] =
    SHAPE.exec(text) ?? refuse('it has not the lines of one');
  return {
    origin,
    size: numberOf(size),
    root: hashOf(root),
    tenants: { count: numberOf(count), root: hashOf(tenantsRoot) },
    position,
    time: timeOf(time),
  };
};

/** 30 February and 25 o'clock look like times, too, and are neither before nor behind any other. */
const timeOf = (text: string): string => {
  const at = Date.parse(text);
  const known = !Number.isNaN(at) && new Date(at).toISOString().startsWith(text.slice(0, 19));
  return known ? text : refuse(`${text} is not a time`);
};

const numberOf = (text: string): number => {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : refuse(`${text} is too large a number`);
};

const hashOf = (text: string): Buffer => {
  const bytes = fromBase64(text);
  return bytes !== undefined && isHash(bytes) ? bytes : refuse('a root is not 32 bytes in base64');
};

const refuse = (why: string): never => {
  throw new InvalidCheckpoint(`not a checkpoint: ${why}`);
};
