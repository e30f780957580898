import type { Checkpoint } from '../merkle/checkpoint.ts';
import type { Trust } from '../merkle/key-chain.ts';
import type { Findings } from './findings.ts';
import { pinOf, type PinState } from './pin-check.ts';
import { authorityOf, openCheckpoint } from './trust-check.ts';

/** By what a head is checked that a running service shows. */
export type HeadOptions = {
  /** The auditor's own keys and pin. Without them the keys of the service are taken as they are. */
  readonly trust?: Trust | undefined;
  /** Keys that the service names, and how each came to be trusted: those that the auditor's own announced count, too. */
  readonly shipped?: Trust | undefined;
  /**
   * Asks the service for the proof from one size of the log to a larger one: its path, in base64; undefined: it gives none.
   * It is asked only when pin and head are of two sizes.
   */
  readonly between?: (from: number, to: number) => Promise<readonly string[] | undefined>;
};

export type CheckedHead = {
  /** Undefined when it does not count. */
  readonly checkpoint: Checkpoint | undefined;
  readonly pin: PinState;
  /** Events that the pin covers; undefined without one that can be used. */
  readonly pinSize: number | undefined;
};

/** Where findings say that keys come from. */
const SHIPPER = { file: 'keys', what: 'the service is' };

/** A signed head that a running service shows, and whether it is of the history that the auditor pinned. */
export const checkHead = async (
  note: string,
  { trust, shipped, between }: HeadOptions,
  findings: Findings,
): Promise<CheckedHead> => {
  // A pin that comes from the service pins nothing.
  const named = shipped && { origin: shipped.origin, keys: shipped.keys };
  const authority = authorityOf(named, trust, findings, SHIPPER);
  if (authority === undefined)
    findings.add({ code: 'key', message: 'the service names no keys, and none that you trust were given' });
  const checkpoint =
    authority &&
    openCheckpoint(note, authority, (why) =>
      findings.add({ code: 'checkpoint', message: `the signed head does not count: ${why}` }),
    );
  const pin = authority?.pin;
  const path = pin && checkpoint && (await pathBetween(pin.size, checkpoint.size, between));
  const unused = { proofs: undefined, target: undefined, rootAtPin: undefined };
  const state = pinOf({ trust, authority, checkpoint, ...unused, asked: { path } }, findings);
  return { checkpoint, pin: state, pinSize: pin?.size };
};

const pathBetween = async (
  one: number,
  other: number,
  between: HeadOptions['between'],
): Promise<readonly string[] | undefined> => {
  const [from, to] = [Math.min(one, other), Math.max(one, other)];
  return from === 0 || from === to ? [] : between?.(from, to);
};
