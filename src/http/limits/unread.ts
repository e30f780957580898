import { tooMuch, unavailable } from '../errors.ts';

/**
 * Bytes of answers that wait in this process for callers to read them. Whoever asks much and reads nothing would
 * otherwise fill the memory; here reads are refused while too much waits, of one caller first. What is small enough for
 * the socket's own buffer never counts.
 */
export type Unread = {
  /** Throws ApiError 429 when too much of this payer waits, 503 when too much of all does. */
  assertRoom(payer: string): void;
  /** Counts bytes that wait; gives back what ends that. */
  hold(payer: string, bytes: number): () => void;
  readonly bytes: number;
};

export type UnreadLimits = { readonly ofAll: number; readonly ofOne: number };

/** An answer is 1 MiB at most, longer ones are sent in parts; so much comes on top of these for each that is under way. */
export const UNREAD_LIMITS: UnreadLimits = { ofAll: 128 * 1024 * 1024, ofOne: 32 * 1024 * 1024 };

export const createUnread = ({ ofAll, ofOne }: UnreadLimits = UNREAD_LIMITS): Unread => {
  const byPayer = new Map<string, number>();
  let all = 0;
  const add = (payer: string, bytes: number): void => {
    all += bytes;
    const left = (byPayer.get(payer) ?? 0) + bytes;
    if (left === 0) byPayer.delete(payer);
    else byPayer.set(payer, left);
  };
  return {
    assertRoom: (payer) => {
      if (all === 0) return;
      if ((byPayer.get(payer) ?? 0) >= ofOne)
        throw tooMuch(
          `answers of ${ofOne} bytes wait for this tenant's users (or this admin) to read them; read or close those first`,
          'ANSWERS_NOT_READ',
          1,
        );
      if (all >= ofAll)
        throw unavailable('too many answers wait to be read by others; try again', 'ANSWERS_NOT_READ', 1);
    },
    hold: (payer, bytes) => {
      if (bytes === 0) return () => {};
      add(payer, bytes);
      let held = true;
      return () => {
        if (held) add(payer, -bytes);
        held = false;
      };
    },
    get bytes() {
      return all;
    },
  };
};
