import type { Checkpoint } from '../merkle/checkpoint.ts';
import type { EventsResult } from './events-check.ts';
import type { Findings } from './findings.ts';
import {
  FILES,
  isSchema,
  SCHEMA_FOLDER,
  scopeName,
  type BundleManifest,
  type BundleProofs,
} from './format.ts';
import type { DigestedSource } from './reading.ts';
import { filters } from './recorded-times.ts';
import type { Authority } from './trust-check.ts';

/** Whether the manifest is about this export, and the files those that it lists. */
export const checkManifest = async (
  files: DigestedSource,
  present: ReadonlySet<string>,
  manifest: BundleManifest,
  proofs: BundleProofs | undefined,
  authority: Authority | undefined,
  events: EventsResult | undefined,
  findings: Findings,
): Promise<void> => {
  const differs = (code: 'count' | 'origin', message: string): void =>
    findings.add({ code, file: FILES.manifest, message });
  if (authority !== undefined && manifest.origin !== authority.origin)
    differs('origin', `it is of ${manifest.origin}, not of ${authority.origin}`);
  if (proofs !== undefined) {
    if (manifest.range.from !== proofs.from.size || manifest.range.to !== proofs.to.size)
      differs('count', `its range is not the one that is proven, ${proofs.from.size} to ${proofs.to.size}`);
    if (scopeName(manifest.scope) !== scopeName(proofs.scope))
      differs(
        'origin',
        `it speaks of ${scopeName(manifest.scope)}, the proofs of ${scopeName(proofs.scope)}`,
      );
  }
  for (const [what, stated] of Object.entries(manifest.counts)) {
    const found = events?.counts[what as keyof EventsResult['counts']];
    if (found !== undefined && found !== stated)
      differs(
        'count',
        `it counts ${stated} ${what === 'events' ? 'events' : `${what} events`}, there are ${found}`,
      );
  }
  if (!filters(manifest) && (events?.withheldBy.filter ?? 0) > 0)
    differs('count', `it has no filter, ${events?.withheldBy.filter} events are withheld for one`);
  const listed = new Set(manifest.files.map(({ name }) => name));
  for (const name of present)
    if (!listed.has(name) && name !== FILES.manifest && name !== FILES.manifestNote)
      findings.add({ code: 'digest', file: name, message: 'the manifest does not list this file' });
  // Those that every bundle has were looked for already.
  const known = new Set<string>(Object.values(FILES));
  const missing = [...listed].filter((name) => !present.has(name) && !known.has(name));
  const schemas = [...present].some(isSchema) ? [] : missing.filter(isSchema);
  // Told as one, so that they do not hide what else is wrong.
  if (schemas.length > 1)
    findings.add({
      code: 'missing-file',
      file: SCHEMA_FOLDER,
      files: schemas,
      message: `the whole folder is missing: the manifest lists ${schemas.length} files in it`,
    });
  for (const file of schemas.length > 1 ? missing.filter((name) => !isSchema(name)) : missing)
    findings.add({
      code: 'missing-file',
      file,
      message: 'the manifest lists it, the bundle does not hold it',
    });
  for (const { name, bytes, sha256 } of manifest.files) {
    if (!present.has(name)) continue;
    const digest = await digestOf(files, name, findings);
    if (digest !== undefined && (digest.bytes !== bytes || digest.sha256 !== sha256))
      findings.add({ code: 'digest', file: name, message: 'it is not the file that the manifest describes' });
  }
};

/** An export is as of its signed head: what came behind that, it cannot hold. */
export const checkMoment = (
  { asOf }: BundleManifest,
  checkpoint: Checkpoint | undefined,
  findings: Findings,
): void => {
  if (checkpoint === undefined) return;
  const { position, time } = checkpoint;
  if (asOf.position === position && (asOf.time === undefined || asOf.time === time)) return;
  findings.add({
    code: 'time',
    file: FILES.manifest,
    message: `it is as of position ${asOf.position} (${asOf.time ?? 'no time'}), the signed head is of position ${position} (${time})`,
  });
};

const digestOf = async (files: DigestedSource, name: string, findings: Findings) => {
  const known = files.digests.get(name);
  if (known !== undefined) return known;
  try {
    const drained = files.stream(name)[Symbol.asyncIterator]();
    while ((await drained.next()).done !== true);
  } catch (error) {
    findings.add({
      code: 'unreadable',
      file: name,
      message: error instanceof Error ? error.message : String(error),
    });
  }
  return files.digests.get(name);
};
