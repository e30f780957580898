import { fromBase64 } from '../merkle/base64.ts';
import type { Checkpoint } from '../merkle/checkpoint.ts';
import type { Trust } from '../merkle/key-chain.ts';
import { verifyConsistency } from '../merkle/proofs.ts';
import { tenantKey, verifyAbsence, verifyPlace } from '../merkle/tenants.ts';
import type { Findings } from './findings.ts';
import { FILES, scopeName, type BundleProofs } from './format.ts';
import type { Authority } from './trust-check.ts';

/** `continued`: the history is the one that the auditor knew, and what came behind it. */
export type PinState = 'none' | 'continued' | 'broken';

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
  /** Root of the main tree at the pin, where the events of the bundle themselves show it. */
  readonly rootAtPin: Buffer | undefined;
};

/** Whether a bundle continues the auditor's pin: the log, and of a bundle of one tenant this tenant's tree, too. */
export const pinOf = (ask: PinAsk, findings: Findings): PinState => {
  if (ask.trust?.pin === undefined) return 'none';
  const { checkpoint, proofs } = ask;
  const pin = ask.authority?.pin;
  // Without either there is a finding already.
  if (pin === undefined || checkpoint === undefined) return 'broken';
  const broken = (message: string, place: readonly [number, number]): 'broken' => {
    findings.add({ code: 'pin', file: FILES.checkpoint, message, place });
    return 'broken';
  };
  const ofLog = pin.size < checkpoint.size ? logProblem(pin, checkpoint, ask) : sizeProblem(pin, checkpoint);
  if (ofLog !== undefined) return broken(ofLog, [Math.min(pin.size, checkpoint.size), checkpoint.size]);
  const ofTenant = pin.size < checkpoint.size ? tenantProblem(pin, ask, proofs?.scope) : undefined;
  return ofTenant === undefined ? 'continued' : broken(ofTenant, [0, pin.size]);
};

const sizeProblem = (pin: Checkpoint, checkpoint: Checkpoint): string | undefined => {
  if (pin.size > checkpoint.size)
    return (
      `the bundle ends at size ${checkpoint.size}, before your pin of size ${pin.size}: history was taken back, or ` +
      'the bundle is older than the pin; ask for a new export'
    );
  const two = (what: string): string => `two histories of size ${pin.size}: ${what} not the one of your pin`;
  if (!pin.root.equals(checkpoint.root)) return two('its root is');
  if (pin.tenants.count !== checkpoint.tenants.count || !pin.tenants.root.equals(checkpoint.tenants.root))
    return two('the root over its tenants is');
  return pin.position === checkpoint.position ? undefined : two('the position of its last event is');
};

const logProblem = (
  pin: Checkpoint,
  checkpoint: Checkpoint,
  { proofs, rootAtPin }: PinAsk,
): string | undefined => {
  if (rootAtPin !== undefined)
    return rootAtPin.equals(pin.root)
      ? undefined
      : `it is another history than your pin of size ${pin.size}: the events before it have another root`;
  const proof = proofs?.pins.find(({ size }) => size === pin.size);
  if (proof === undefined && pin.size > 0)
    return (
      `the bundle does not show that it continues your pin of size ${pin.size}; ask for an export with ` +
      `"pins": [${pin.size}]`
    );
  const path = decodedHashes(proof?.path ?? []);
  const roots = { fromRoot: pin.root, toRoot: checkpoint.root };
  return verifyConsistency({ from: pin.size, to: checkpoint.size, ...roots, path })
    ? undefined
    : `it is another history than your pin of size ${pin.size}, or the proof between them is wrong`;
};

/** The log may be continued, and events of the tenant from before the pin be filed elsewhere or nowhere all the same. */
const tenantProblem = (
  pin: Checkpoint,
  { proofs, target }: PinAsk,
  scope: BundleProofs['scope'] | undefined,
): string | undefined => {
  // What leads to no target is a finding already.
  if (scope?.kind !== 'tenant' || target === undefined || pin.size === 0) return undefined;
  const proof = proofs?.pins.find(({ size }) => size === pin.size);
  const name = scopeName(scope);
  if (proof?.between !== undefined && proof.tenant === undefined) {
    const between = proof.between.map(({ key, size, root, index, path }) => ({
      head: { key: decodedHash(key), size, root: decodedHash(root) },
      index,
      path: decodedHashes(path),
    }));
    return verifyAbsence(scope.tenant, between, pin.tenants)
      ? undefined
      : `the bundle does not prove that ${name} had no events at your pin of size ${pin.size}`;
  }
  if (proof?.tenant === undefined)
    return (
      `the bundle does not show that the tree of ${name} continues the one at your pin of size ${pin.size}; ask for ` +
      `an export with "pins": [${pin.size}], or, when the pin is older than the first event of ${name}, for one of ` +
      "the provider's"
    );
  const { size, root, index, path, consistency } = proof.tenant;
  const head = { key: tenantKey(scope.tenant), size, root: decodedHash(root) };
  if (!verifyPlace({ head, index, path: decodedHashes(path) }, pin.tenants))
    return `your pin of size ${pin.size} does not vouch for a tree of ${name} with ${size} events and this root`;
  const roots = { fromRoot: head.root, toRoot: target.root };
  return verifyConsistency({ from: size, to: target.size, ...roots, path: decodedHashes(consistency) })
    ? undefined
    : `events of ${name} from before your pin of size ${pin.size} are missing or changed: its tree is not continued`;
};
