import { LogDamaged, StoreUnavailable, type DamagedAt } from '../../../app/log/event-store.ts';

/** The file does not hold what was written to it. Nothing is read from or written to it any more. */
export class StoreDamaged extends LogDamaged {
  override readonly name = 'StoreDamaged';
  readonly file: string;
  readonly finding: string;
  constructor(file: string, finding: string, options?: ErrorOptions & { readonly at?: DamagedAt }) {
    super(
      `the event log ${file} is damaged: ${finding}. ` +
        'Run `ledgerctl store check` for every finding, then restore the newest good backup.',
      options?.at,
      options,
    );
    this.file = file;
    this.finding = finding;
  }
}

/** The file was written by a newer version of this software. */
export class StoreTooNew extends Error {
  override readonly name = 'StoreTooNew';
  readonly file: string;
  readonly found: number;
  readonly known: number;
  constructor(file: string, found: number, known: number) {
    super(
      `the event log ${file} was written by a newer version of this service (schema ${found}, this version knows ${known}): ` +
        'name another LEDGER_DATA_DIR, or run the version that wrote it',
    );
    this.file = file;
    this.found = found;
    this.known = known;
  }
}

/** An error on its way from the writer thread: structured cloning keeps no classes. */
export type PackedError =
  | { readonly kind: 'damaged'; readonly file: string; readonly finding: string }
  | { readonly kind: 'too-new'; readonly file: string; readonly found: number; readonly known: number }
  | { readonly kind: 'other'; readonly message: string };

export const packError = (error: unknown): PackedError => {
  if (error instanceof StoreDamaged) return { kind: 'damaged', file: error.file, finding: error.finding };
  if (error instanceof StoreTooNew)
    return { kind: 'too-new', file: error.file, found: error.found, known: error.known };
  return { kind: 'other', message: messageOf(error) };
};

export const unpackError = (packed: PackedError): Error => {
  switch (packed.kind) {
    case 'damaged':
      return new StoreDamaged(packed.file, packed.finding);
    case 'too-new':
      return new StoreTooNew(packed.file, packed.found, packed.known);
    case 'other':
      return new Error(packed.message);
  }
};

/** Extended result codes of SQLite that decide what an error means. */
const FULL = 13;
const SQL_ERROR = 1;
const FORMAT = 24;
const CORRUPT = 11;
const NOT_A_DATABASE = 26;
const BUSY = 5;
const IOERR = 10;
const IOERR_WRITE = 10 | (3 << 8);

/** Extended result code of an error of node:sqlite, undefined for any other error. */
export const sqliteCode = (error: unknown): number | undefined =>
  error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
    ? error.errcode
    : undefined;

export const isBusy = (error: unknown): boolean => primary(error) === BUSY;

export const isDamage = (error: unknown): boolean =>
  primary(error) === CORRUPT || primary(error) === NOT_A_DATABASE;

/**
 * The same for the first looks into a file, whose statements are right for every file of ours: there an SQL error
 * (1) or a format error (24) is the file's fault too.
 */
export const isStrangeFile = (error: unknown): boolean =>
  isDamage(error) || primary(error) === SQL_ERROR || primary(error) === FORMAT;

/**
 * No space: the disk or a quota (FULL), a file-size limit (a refused write), or a bound set on the file.
 * In each case the write itself was refused, so a transaction whose COMMIT fails this way was not stored: its
 * commit frame is the last thing written to the WAL.
 */
export const isNoSpace = (error: unknown): boolean =>
  primary(error) === FULL || sqliteCode(error) === IOERR_WRITE;

const primary = (error: unknown): number | undefined => {
  const code = sqliteCode(error);
  return code === undefined ? undefined : code & 0xff;
};

/** What a failed read means to a caller of the port. */
export const readError = (file: string, error: unknown): unknown => {
  if (isDamage(error)) return new StoreDamaged(file, messageOf(error), { cause: error });
  if (isBusy(error) || primary(error) === IOERR)
    return new StoreUnavailable(`the event log ${file} cannot be read: ${messageOf(error)}`, 'down', {
      cause: error,
    });
  return error;
};

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
