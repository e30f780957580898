import type { ZodType } from 'zod';
import type { JsonValue } from '../../../domain/json.ts';
import type { Checkpoint } from '../merkle/checkpoint.ts';
import { compactRange } from '../merkle/compact-range.ts';
import type { Trust } from '../merkle/key-chain.ts';
import { InvalidNote, verifyNote } from '../merkle/note.ts';
import { verifyInclusion } from '../merkle/proofs.ts';
import { tenantKey, tenantLeafHash } from '../merkle/tenants.ts';
import { checkEvents, type EventsResult } from './events-check.ts';
import { collectFindings, outcomeOf, type Finding, type Findings, type Outcome } from './findings.ts';
import {
  FILES,
  manifestSchema,
  manifestText,
  NOT_PROVEN,
  NOT_PROVEN_WITHOUT_PIN,
  proofsSchema,
  provenBy,
  isSchema,
  scopeName,
  trustSchema,
  type BundleManifest,
  type BundleProofs,
  type BundleSource,
} from './format.ts';
import { checkManifest, checkMoment } from './manifest-check.ts';
import { checkOcsf, OCSF_FILE } from './ocsf-check.ts';
import {
  decodedHash,
  decodedHashes,
  pinOf,
  type LaterProof,
  type PinState,
  type Target,
} from './pin-check.ts';
import { digesting, NotABundle, type DigestedSource } from './reading.ts';
import { periodOf, tellTimes, type Period } from './recorded-times.ts';
import { notAmongThem, tellGaps } from './revision-check.ts';
import { authorityOf, openCheckpoint, outlivedAll, type Authority } from './trust-check.ts';

/** Strings, and what parts the values of a JSON text; everything between them is of no account here. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;

/**
 * The first name that stands twice in one object of a JSON text: of these readers take one or the other value, so that two of
 * them may read two texts. Undefined when there is none.
 *
 * @param text one that JSON.parse reads.
 */
const repeatedName = (text: string): string | undefined => {
  /** Names of the objects that are open, from the outside in; undefined for a list. */
  const open: (Set<string> | undefined)[] = [];
  let atName = false;
  for (const [token] of text.matchAll(TOKEN)) {
    const names = open.at(-1);
    if (token === '{' || token === '[') {
      open.push(token === '{' ? new Set() : undefined);
      atName = token === '{';
    } else if (token === '}' || token === ']') {
      open.pop();
      atName = false;
    } else if (token === ',') atName = names !== undefined;
    else if (atName && names !== undefined) {
      const name = JSON.parse(token) as string;
      if (names.has(name)) return name;
      names.add(name);
      atName = false;
    }
  }
  return undefined;
};

export type BundleReport = Outcome & {
  /** What is not wrong but may be a trace: recorded times as a clock leaves them that was set. In words. */
  readonly remarks: readonly string[];
  /** Whether the keys are the auditor's own, or those that came with the bundle. */
  readonly keys: 'pinned' | 'from the bundle';
  /** Whether the history continues a checkpoint that the auditor knew before. */
  readonly pin: PinState;
  /** Events that the pin covers; undefined without one that can be used. */
  readonly pinSize: number | undefined;
  readonly checkpoint: { readonly size: number; readonly time: string; readonly note: string } | undefined;
  readonly scope: string;
  readonly range: { readonly from: number; readonly to: number } | undefined;
  /** Times that were asked for, as the service stated; undefined where that cannot be told. */
  readonly period: Period | undefined;
  /** Events that the tree of the scope has at the checkpoint: the export holds `range` of them. */
  readonly treeSize: number | undefined;
  readonly counts: EventsResult['counts'];
  /** Redacted events of which all that is shown is proven: those whose leaf has `hidden`. */
  readonly redactedProven: number;
  readonly occurred: EventsResult['occurred'];
  /** Withheld events: left out by the filter, or not for this reader, as the service says. */
  readonly withheldBy: EventsResult['withheldBy'];
  /** What to trust from here on: the auditor's keys, those that they announced, and the checkpoint of the bundle; only when nothing is wrong. */
  readonly trust: Trust | undefined;
  readonly proven: readonly string[];
  readonly notProven: readonly string[];
};

/** Checks a bundle without server or network. Never throws for what is wrong with it: that is what it reports. */
export const verifyBundle = async (
  source: BundleSource,
  options: { readonly trust?: Trust; readonly later?: LaterProof } = {},
): Promise<BundleReport> => {
  const findings = collectFindings();
  const files = digesting(source);
  const present = await namesOf(source, findings);
  const { text: readText, json: read } = smallFiles(files, present, findings);
  const manifest = await read(FILES.manifest, manifestSchema);
  const shipped = (await read(FILES.trust, trustSchema)) as Trust | undefined;
  const proofs = await read(FILES.proofs, proofsSchema);
  const note = await readText(FILES.checkpoint);
  const authority = authorityOf(shipped, options.trust, findings);
  const checkpoint =
    note === undefined || authority === undefined
      ? undefined
      : openCheckpoint(note, authority, (message) =>
          findings.add({ code: 'checkpoint', file: FILES.checkpoint, message }),
        );
  const target = proofs === undefined ? undefined : targetOf(proofs, checkpoint, findings);
  const ready = [FILES.events, FILES.leaves].every((name) => present.has(name)) && proofs !== undefined;
  const pin = options.trust === undefined ? undefined : authority?.pin;
  const period = manifest === undefined ? undefined : periodOf(manifest, findings);
  const events = ready
    ? await checkEvents(files, { proofs, target, checkpoint, pin, period }, findings)
    : undefined;
  if (present.has(OCSF_FILE) && ready && findings.count() === 0) await checkOcsf(files, findings);
  if (manifest !== undefined)
    checkManifestNote(
      await readText(FILES.manifestNote),
      files.digests.get(FILES.manifest)?.sha256,
      { authority, manifest, checkpoint },
      findings,
    );
  if (manifest !== undefined) {
    checkMoment(manifest, checkpoint, findings);
    await checkManifest(files, present, manifest, proofs, authority, events, findings);
  }
  const { trust, later } = options;
  const pinState = pinOf(
    { trust, later, authority, checkpoint, proofs, target, rootAtPin: events?.rootAtPin },
    findings,
  );
  const range = proofs === undefined ? undefined : { from: proofs.from.size, to: proofs.to.size };
  // Told last: the files are whole, and show what they show of the pin.
  if (events !== undefined && range !== undefined) {
    const everywhere = { file: FILES.events, place: [range.from, range.to] as const };
    tellGaps(events.gaps, findings, everywhere);
    tellTimes(events.times.findings, findings, everywhere);
  }
  const ok = findings.count() === 0;
  return {
    ...outcomeOf(findings),
    remarks: events?.times.remarks() ?? [],
    keys: options.trust === undefined ? 'from the bundle' : 'pinned',
    pin: pinState,
    pinSize: pin?.size,
    checkpoint:
      checkpoint === undefined || note === undefined
        ? undefined
        : { size: checkpoint.size, time: checkpoint.time, note },
    scope: proofs === undefined ? 'unknown' : scopeName(proofs.scope),
    range,
    period,
    treeSize: proofs?.tree.size,
    counts: events?.counts ?? { events: 0, full: 0, redacted: 0, withheld: 0 },
    redactedProven: events?.redactedProven ?? 0,
    occurred: events?.occurred ?? { first: '', last: '' },
    withheldBy: events?.withheldBy ?? { filter: 0, audience: 0 },
    // A pin moves forward alone.
    trust: ok && note !== undefined && pinState !== 'leads to' ? trustFrom(authority, note) : undefined,
    proven:
      ok && proofs !== undefined && range !== undefined
        ? provenBy(proofs.scope, range, events && { ...events.counts, redactedProven: events.redactedProven })
        : [],
    notProven: [
      ...NOT_PROVEN.map((text) =>
        text === NOT_PROVEN_WITHOUT_PIN && ['continued', 'leads to'].includes(pinState)
          ? behindPin(pin?.size)
          : text,
      ),
      ...notAmongThem(events?.lacking),
      ...keptFromAll(proofs?.scope, events?.withheldBy.audience),
    ],
  };
};

/** What a pin that is continued leaves open. */
const behindPin = (size: number | undefined): string =>
  `that nothing was taken back behind your pin of size ${size}: others may have been shown more of it`;

/** Who reads the whole log is the provider. */
const keptFromAll = (scope: BundleProofs['scope'] | undefined, withheld = 0): string[] =>
  scope?.kind !== 'log' || withheld === 0
    ? []
    : [
        `that ${withheld} of the events had to be withheld from a reader of the whole log: none is, but where more is hidden ` +
          'today than when it was stored',
      ];

/** The auditor's own keys stay, whatever came with the bundle. */
const trustFrom = (authority: Authority | undefined, pin: string): Trust | undefined =>
  authority?.keys === undefined ? undefined : { origin: authority.origin, keys: authority.keys, pin };

/** Whoever lays other files into a folder has at most this one there. */
const ALSO_ELSEWHERE: string = FILES.trust;

const namesOf = async (source: BundleSource, findings: Findings): Promise<ReadonlySet<string>> => {
  const known = new Set<string>(Object.values(FILES));
  const nothing = (finding: Finding): ReadonlySet<string> => {
    findings.add(finding);
    return new Set();
  };
  const other = (what: string): ReadonlySet<string> =>
    nothing({ code: 'not-a-bundle', message: `this is not an export bundle: ${what}` });
  let names: readonly string[];
  try {
    names = await source.names();
  } catch (error) {
    return error instanceof NotABundle
      ? other(error.message)
      : nothing({ code: 'unreadable', message: `the bundle cannot be read: ${messageOf(error)}` });
  }
  const present = new Set<string>();
  const twice = new Set(names.filter((name) => present.has(name) || !present.add(name)));
  if (!names.some((name) => known.has(name) && name !== ALSO_ELSEWHERE))
    return other(
      names.length === 0
        ? 'it holds no file'
        : `none of ${[...known].filter((name) => name !== ALSO_ELSEWHERE).join(', ')} is in it`,
    );
  for (const name of known)
    if (!present.has(name))
      findings.add({ code: 'missing-file', file: name, message: 'the bundle does not hold this file' });
  for (const name of present) {
    if (!known.has(name) && !isSchema(name) && name !== OCSF_FILE)
      findings.add({ code: 'unknown-file', file: name, message: 'no bundle holds a file of this name' });
    if (twice.has(name))
      findings.add({ code: 'unknown-file', file: name, message: 'the bundle holds two files of this name' });
  }
  return present;
};

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Reads files that are small by nature; undefined for one that is not there, or that is found to be wrong. */
const smallFiles = (files: DigestedSource, present: ReadonlySet<string>, findings: Findings) => {
  const text = async (name: string): Promise<string | undefined> => {
    if (!present.has(name)) return undefined;
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await files.whole(name));
    } catch (error) {
      findings.add({ code: 'unreadable', file: name, message: messageOf(error) });
      return undefined;
    }
  };
  const json = async <T>(name: string, schema: ZodType<T>): Promise<T | undefined> => {
    const read = await text(name);
    if (read === undefined) return undefined;
    const malformed = (message: string): undefined =>
      findings.add({ code: 'malformed', file: name, message }) as undefined;
    try {
      const parsed = schema.safeParse(JSON.parse(read) as JsonValue);
      const twice = repeatedName(read);
      if (twice !== undefined)
        malformed(`it names ${JSON.stringify(twice)} twice, which two readers could read in two ways`);
      if (parsed.success) return parsed.data;
      const [issue] = parsed.error.issues;
      return malformed(`${issue?.path.join('.') || 'it'}: ${issue?.message ?? 'is not what it should be'}`);
    } catch (error) {
      // RangeError: nested more deeply than anything that is written.
      if (error instanceof SyntaxError) return malformed(`it is not JSON: ${messageOf(error)}`);
      if (error instanceof RangeError) return malformed(`it cannot be read: ${messageOf(error)}`);
      throw error;
    }
  };
  return { text, json };
};

const targetOf = (
  proofs: BundleProofs,
  checkpoint: Checkpoint | undefined,
  findings: Findings,
): Target | undefined => {
  const wrong = (message: string): undefined =>
    findings.add({ code: 'proof', file: FILES.proofs, message }) as undefined;
  const { from, to, tree, tenant, scope } = proofs;
  if (from.size > to.size || to.size > tree.size) return wrong('its sizes do not follow each other');
  if (from.hashes.length !== compactRange(from.size).length)
    return wrong(`it does not hold the compact range of ${from.size} leaves`);
  if (checkpoint === undefined) return undefined;
  const path = decodedHashes(tree.path);
  if (scope.kind === 'log') {
    if (tree.size !== checkpoint.size)
      return wrong(`it is about size ${tree.size}, the checkpoint is of ${checkpoint.size}`);
    return { size: tree.size, root: checkpoint.root, path };
  }
  if (tenant === undefined) return wrong('it lacks the proof of the tree of the tenant');
  const root = decodedHash(tenant.root);
  const proven = verifyInclusion({
    index: tenant.index,
    size: checkpoint.tenants.count,
    leafHash: tenantLeafHash({ key: tenantKey(scope.tenant), size: tree.size, root }),
    path: decodedHashes(tenant.path),
    root: checkpoint.tenants.root,
  });
  if (proven) return { size: tree.size, root, path };
  findings.add({
    code: 'tenant',
    file: FILES.proofs,
    message: `the checkpoint does not vouch for a tree of ${scopeName(scope)} with ${tree.size} events and this root`,
  });
  return undefined;
};

/** Without it somebody on the way could change what no tree holds: times, data of old redacted events, what was asked for. */
const checkManifestNote = (
  note: string | undefined,
  digest: string | undefined,
  {
    authority,
    manifest,
    checkpoint,
  }: {
    readonly authority: Authority | undefined;
    readonly manifest: BundleManifest;
    readonly checkpoint: Checkpoint | undefined;
  },
  findings: Findings,
): void => {
  if (note === undefined || digest === undefined || authority === undefined) return;
  const wrong = (message: string): void =>
    findings.add({ code: 'digest', file: FILES.manifestNote, message });
  try {
    const { text, signers } = verifyNote(note, authority.vkeys);
    const signed = { size: checkpoint?.size ?? 0, time: manifest.createdAt };
    const late = outlivedAll(signers, signed, authority.successors);
    if (late !== undefined) wrong(late);
    if (text !== manifestText(authority.origin, digest))
      wrong('it was signed for another manifest: manifest.json was changed, or belongs to another export');
  } catch (error) {
    if (!(error instanceof InvalidNote)) throw error;
    wrong(error.message);
  }
};
