import { fromBase64 } from '../merkle/base64.ts';
import type { Checkpoint } from '../merkle/checkpoint.ts';
import type { Trust } from '../merkle/key-chain.ts';
import { verifyConsistency } from '../merkle/proofs.ts';
import { tenantKey, verifyAbsence, verifyPlace } from '../merkle/tenants.ts';
import type { Findings } from './findings.ts';
import { FILES, SCHEMA_FOLDER, scopeName, type BundleProofs } from './format.ts';
import { OCSF_FILE } from './ocsf-check.ts';
import type { Authority } from './trust-check.ts';

/**
 * What an export shows of the auditor's pin. Only `broken` contradicts it: the checkpoint is signed, and its files are whole and
 * of another history, or it is smaller than the pin and was signed later.
 *
 * - `none`: there is no pin
 * - `continued`: the history is the one that the auditor knew, and what came behind it
 * - `leads to`: the checkpoint is smaller than the pin, and a proof that came beside the export leads from it to the pin
 * - `ends before`: the checkpoint is smaller than the pin, and an export proves nothing of what came behind it
 * - `not shown`: the export lacks the proof that leads from the pin to its checkpoint
 * - `not checked`: the pin cannot be used, no checkpoint counts, or the files that would show it are damaged
 */
export type PinState =
  | 'none'
  | 'continued'
  | 'leads to'
  | 'ends before'
  | 'not shown'
  | 'not checked'
  | 'broken';

/** Beside the export: the log of size `to` continues that of size `from` (`GET /api/audit/v1/consistency`); hashes in base64. */
export type LaterProof = { readonly from: number; readonly to: number; readonly path: readonly string[] };

/** Root and size that the checkpoint vouches for in the tree of the bundle. */
export type Target = { readonly size: number; readonly root: Buffer; readonly path: readonly Buffer[] };

export const decodedHash = (hash: string): Buffer => fromBase64(hash) ?? Buffer.alloc(0);
export const decodedHashes = (hashes: readonly string[]): Buffer[] => hashes.map(decodedHash);

export type PinAsk = {
  readonly trust: Trust | undefined;
  readonly authority: Authority | undefined;
  readonly checkpoint: Checkpoint | undefined;
  readonly proofs: BundleProofs | undefined;
  /** The tree of the scope as the checkpoint vouches for it. */
  readonly target: Target | undefined;
  /** Of an export that is older than the pin, or of the whole log without a proof of the pin. */
  readonly later?: LaterProof | undefined;
  /** Root of the main tree at the pin, where the events of the bundle (or tiles) themselves show it. */
  readonly rootAtPin: Buffer | undefined;
  /** What is checked. Default: an export. `service`: tiles as a running service shows them. */
  readonly what?: 'tiles' | 'service' | undefined;
  /** What a running service gave when it was asked how its head and the pin hang together. */
  readonly asked?: Asked | undefined;
};

/**
 * `path`: that of the proof from the smaller to the larger of head and pin, in base64; undefined: the service gave none. Not
 * needed for two of the same size.
 */
export type Asked = { readonly path: readonly string[] | undefined };

/**
 * Whether a bundle continues the auditor's pin: the log, and of a bundle of one tenant this tenant's tree, too. To be asked
 * last: in files that are damaged a proof that does not hold tells nothing of the history.
 */
export const pinOf = (ask: PinAsk, findings: Findings): PinState => {
  if (ask.trust?.pin === undefined) return 'none';
  const { checkpoint } = ask;
  const pin = ask.authority?.pin;
  // Without either there is a finding already.
  if (pin === undefined || checkpoint === undefined) return 'not checked';
  const unsound = damaged(findings);
  const said = findings.list().some(({ code }) => code === 'pin');
  const back = takenBack(pin, checkpoint);
  const { state, message, place }: Verdict =
    back === undefined ? verdictOf(pin, checkpoint, ask, unsound) : { state: 'broken', message: back };
  if (message !== undefined)
    findings.add({
      code: back === undefined ? 'pin' : 'taken-back',
      file: FILES.checkpoint,
      message,
      place: place ?? (back === undefined ? [pin.size, checkpoint.size] : [checkpoint.size, pin.size]),
    });
  if (state !== 'continued' || !said) return state;
  // The events themselves showed something else than the pin.
  return unsound ? 'not checked' : 'broken';
};

/** Files that a proof does not come from: that they are damaged says nothing of one that fails. */
const besideProofs = (file: string | undefined): boolean =>
  file !== undefined && (file === OCSF_FILE || file.startsWith(SCHEMA_FOLDER));

const damaged = (findings: Findings): boolean =>
  findings.count() > findings.list().length ||
  findings.list().some(({ code, file }) => code !== 'pin' && !besideProofs(file));

type Verdict = {
  readonly state: PinState;
  readonly message?: string;
  /** Default: from the pin to the checkpoint. */
  readonly place?: readonly [number, number];
};

const CONTINUED: Verdict = { state: 'continued' };

/** Something that the pin covers was changed, moved, added or taken out. */
const broken = ({ size }: Checkpoint, message: string): Verdict => ({
  state: 'broken',
  message,
  place: [0, size],
});

const verdictOf = (pin: Checkpoint, checkpoint: Checkpoint, ask: PinAsk, unsound: boolean): Verdict => {
  if (pin.size === checkpoint.size) {
    const problem = sizeProblem(pin, checkpoint);
    return problem === undefined ? CONTINUED : broken(pin, problem);
  }
  if (ask.asked !== undefined) return askedVerdict(pin, checkpoint, ask.asked);
  if (pin.size > checkpoint.size) return laterVerdict(pin, checkpoint, ask);
  const verdict = logVerdict(pin, checkpoint, ask) ?? tenantVerdict(pin, ask) ?? CONTINUED;
  return unsound && verdict !== CONTINUED ? { state: 'not checked' } : verdict;
};

/** How it is said that something ends before the pin, and how newer things are had. */
const ENDING = {
  export: {
    ends: 'the export ends',
    shows: 'holds no proof from there to it: it is older',
    anew: 'ask for a new export',
  },
  tiles: {
    ends: 'the tiles end',
    shows: 'no proof leads from there to it: they are older',
    anew: 'fetch those that are there by now (ledgerctl audit mirror)',
  },
} as const;

const laterVerdict = (pin: Checkpoint, checkpoint: Checkpoint, { later, what }: PinAsk): Verdict => {
  const [from, to] = [checkpoint.size, pin.size];
  if (what === 'service')
    return {
      state: 'ends before',
      place: [from, to],
      message:
        `the service shows a head of size ${from}, before your pin of size ${to}: this instance is behind, or history ` +
        'was taken back; nothing was kept. Run it again in a minute against every instance; if the head stays behind, keep ' +
        'your trust.json, exports and mirrors, and ask the operators which backup was put back, and why',
    };
  const words = ENDING[what ?? 'export'];
  const ends = (why: string): Verdict => ({
    state: 'ends before',
    message: `${words.ends} at size ${from}, before your pin of size ${to}, and ${why}`,
    place: [from, to],
  });
  if (later === undefined)
    return ends(
      `${words.shows} than the pin, or history was taken back. Ask for the proof (ledgerctl audit consistency ` +
        `--from ${from} --to ${to} -o proof.json) and give it with --consistency, or check it with the trust.json that you ` +
        `kept when you got it, or ${words.anew}`,
    );
  if (later.from !== from || later.to !== to)
    return ends(`the proof that was given is from size ${later.from} to size ${later.to}: it is of others`);
  const roots = { fromRoot: checkpoint.root, toRoot: pin.root };
  return verifyConsistency({ from, to, ...roots, path: decodedHashes(later.path) })
    ? { state: 'leads to' }
    : ends(
        'the proof that was given does not lead from there to it: it is damaged, or this is another history',
      );
};

/** Head and pin are signed, and the proof is made for the two: one that does not hold shows that they are of two histories. */
const askedVerdict = (pin: Checkpoint, checkpoint: Checkpoint, { path }: Asked): Verdict => {
  const [older, newer] = pin.size < checkpoint.size ? [pin, checkpoint] : [checkpoint, pin];
  const [from, to] = [older.size, newer.size];
  // Everything continues nothing.
  if (path === undefined && from > 0)
    return {
      state: 'not shown',
      place: [from, to],
      message:
        `the service does not show how its head of size ${checkpoint.size} and your pin of size ${pin.size} hang together: ` +
        'history was taken back, or an instance answers that is behind',
    };
  const roots = { fromRoot: older.root, toRoot: newer.root };
  if (!verifyConsistency({ from, to, ...roots, path: decodedHashes(path ?? []) }))
    return broken(older, anotherHistory(pin, from));
  return older === pin ? CONTINUED : { state: 'leads to' };
};

/**
 * That a head was signed after one of a larger tree, in words; undefined: it was not. One log signs its heads one after the
 * other, each larger than the one before it and none with an earlier time (see the signer): whatever proof leads from
 * the one to the other, the log was as small again as it had been. What the larger one covered since is gone, or was added anew.
 */
export const takenBack = (larger: Checkpoint, smaller: Checkpoint): string | undefined =>
  smaller.size < larger.size && Date.parse(smaller.time) > Date.parse(larger.time)
    ? `history was taken back: size ${smaller.size} was signed at ${smaller.time}, after size ${larger.size} at ${larger.time}`
    : undefined;

/** `before`: the leaf in front of which they differ. */
const anotherHistory = ({ size }: Checkpoint, before: number): string =>
  `it is another history than your pin of size ${size}, in which other events lie before leaf ${before}, or the proof ` +
  'between them is wrong';

/** What differs of two heads of the same size, in words; undefined: nothing does. */
export const sizeProblem = (pin: Checkpoint, checkpoint: Checkpoint): string | undefined => {
  const two = (what: string): string => `two histories of size ${pin.size}: ${what} not the one of your pin`;
  if (!pin.root.equals(checkpoint.root)) return two('its root is');
  if (pin.tenants.count !== checkpoint.tenants.count || !pin.tenants.root.equals(checkpoint.tenants.root))
    return two('the root over its tenants is');
  return pin.position === checkpoint.position ? undefined : two('the position of its last event is');
};

const logVerdict = (
  pin: Checkpoint,
  checkpoint: Checkpoint,
  { proofs, rootAtPin, later }: PinAsk,
): Verdict | undefined => {
  if (rootAtPin !== undefined)
    return rootAtPin.equals(pin.root)
      ? undefined
      : broken(
          pin,
          `it is another history than your pin of size ${pin.size}: the events before leaf ${pin.size} have another root`,
        );
  const proof = proofs?.pins.find(({ size }) => size === pin.size);
  if (proof === undefined && pin.size > 0) return besideVerdict(pin, checkpoint, later, proofs?.scope);
  const path = decodedHashes(proof?.path ?? []);
  const roots = { fromRoot: pin.root, toRoot: checkpoint.root };
  return verifyConsistency({ from: pin.size, to: checkpoint.size, ...roots, path })
    ? undefined
    : broken(pin, anotherHistory(pin, pin.size));
};

/** Of a pin of which the bundle shows nothing: what a proof shows that came beside it. */
const besideVerdict = (
  pin: Checkpoint,
  checkpoint: Checkpoint,
  later: LaterProof | undefined,
  scope: BundleProofs['scope'] | undefined,
): Verdict | undefined => {
  const [from, to] = [pin.size, checkpoint.size];
  const unshown = (why: string): Verdict => ({
    state: 'not shown',
    message: `the bundle does not show that it continues your pin of size ${from}; ${why}`,
  });
  const anew = `ask for an export with "pins": [${from}] (audit export --trust)`;
  if (later === undefined || scope?.kind !== 'log')
    return unshown(
      scope?.kind === 'log'
        ? `${anew}, or for the proof (ledgerctl audit consistency --from ${from} --to ${to} -o proof.json) and give it with --consistency`
        : anew,
    );
  if (later.from !== from || later.to !== to)
    return unshown(
      `the proof that was given is from size ${later.from} to size ${later.to}: it is of others`,
    );
  const roots = { fromRoot: pin.root, toRoot: checkpoint.root };
  if (verifyConsistency({ from, to, ...roots, path: decodedHashes(later.path) })) return undefined;
  return unshown(
    'the proof that was given does not lead from there to it: it is damaged, or this is another history',
  );
};

/** The log may be continued, and events of the tenant from before the pin be filed elsewhere or nowhere all the same. */
const tenantVerdict = (pin: Checkpoint, { proofs, target }: PinAsk): Verdict | undefined => {
  const scope = proofs?.scope;
  // What leads to no target is a finding already.
  if (scope?.kind !== 'tenant' || target === undefined || pin.size === 0) return undefined;
  const proof = proofs?.pins.find(({ size }) => size === pin.size);
  const name = scopeName(scope);
  const place = [0, pin.size] as const;
  if (proof?.between !== undefined && proof.tenant === undefined) {
    const between = proof.between.map(({ key, size, root, index, path }) => ({
      head: { key: decodedHash(key), size, root: decodedHash(root) },
      index,
      path: decodedHashes(path),
    }));
    return verifyAbsence(scope.tenant, between, pin.tenants)
      ? undefined
      : broken(pin, `the bundle does not prove that ${name} had no events at your pin of size ${pin.size}`);
  }
  if (proof?.tenant === undefined)
    return {
      state: 'not shown',
      place,
      message:
        `the bundle does not show that the tree of ${name} continues the one at your pin of size ${pin.size}; ask for ` +
        `an export with "pins": [${pin.size}] (audit export --trust). A pin from before the first event of ${name} cannot be ` +
        'used: take a new one over a way that you trust (audit trust -o <new file>, GET /api/audit/v1/trust.json) and export again',
    };
  const { size, root, index, path, consistency } = proof.tenant;
  const head = { key: tenantKey(scope.tenant), size, root: decodedHash(root) };
  if (!verifyPlace({ head, index, path: decodedHashes(path) }, pin.tenants))
    return broken(
      pin,
      `your pin of size ${pin.size} does not vouch for a tree of ${name} with ${size} events and this root`,
    );
  const roots = { fromRoot: head.root, toRoot: target.root };
  return verifyConsistency({ from: size, to: target.size, ...roots, path: decodedHashes(consistency) })
    ? undefined
    : broken(
        pin,
        `events of ${name} from before your pin of size ${pin.size} are missing or changed: its tree is not continued`,
      );
};
