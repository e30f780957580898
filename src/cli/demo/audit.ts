import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { findingText } from '../../app/audit/bundle/findings.ts';
import { verifyBundle, type BundleReport } from '../../app/audit/bundle/verify.ts';
import type { Trust } from '../../app/audit/merkle/key-chain.ts';
import type { Export } from '../../http/audit/answers.ts';
import type { ApiClient } from '../api-client.ts';
import { openBundle } from '../audit/bundle-source.ts';
import type { Narrator } from './narrator.ts';

/** What an auditor takes away: the bundle, and what it is checked against. */
export type Taken = { readonly bundle: string; readonly trust: Trust };

const EXPORTS = '/api/audit/v1/exports';
const TENANT = 'acme';

/**
 * As an auditor of the tenant: pins what is signed now, then exports the tenant's whole history and fetches it.
 *
 * @param download fetches a file of the service as bytes.
 */
export const takeExport = async ({
  narrator,
  auditor,
  download,
  dir,
  patienceMs,
}: {
  readonly narrator: Narrator;
  readonly auditor: ApiClient;
  readonly download: (path: string) => Promise<Uint8Array>;
  readonly dir: string;
  readonly patienceMs: number;
}): Promise<Taken> => {
  narrator.chapter(`Audit: an auditor of ${TENANT} exports its history`);
  const trust = await auditor.get<Trust>('/api/audit/v1/trust.json');
  const asked = await auditor.send<Export>('POST', EXPORTS, { tenant: TENANT });
  const deadline = performance.now() + patienceMs;
  let made = asked;
  while (made.state === 'running' || made.state === 'waiting') {
    if (performance.now() > deadline) break;
    await pause(100);
    made = await auditor.get<Export>(`${EXPORTS}/${asked.id}`);
  }
  narrator.check(
    'the export was made',
    made.state === 'complete',
    `${made.events ?? 0} events${made.reason ?? ''}`,
  );
  const bundle = join(dir, 'export.tar');
  await writeFile(bundle, await download(`${EXPORTS}/${asked.id}/file`));
  return { bundle, trust };
};

/** Without any service: checks the bundle, then flips one bit in one event and checks it again. */
export const checkOffline = async (narrator: Narrator, { bundle, trust }: Taken): Promise<void> => {
  narrator.chapter('Offline: the export, checked while nothing runs');
  const verify = async (): Promise<BundleReport> => verifyBundle(await openBundle(bundle), { trust });
  const report = await verify();
  narrator.check(
    'every event is proven, under a signature of the pinned key',
    report.ok && report.keys === 'pinned' && report.counts.events > 0,
    report.findings.map(findingText).join('; ') ||
      `${report.counts.events} events: ${report.counts.full} shown in full, ${report.redactedProven} as far as the tenant may see them`,
  );
  for (const text of report.proven) narrator.say(text);
  const { event, bytes } = tamper(await readFile(bundle));
  await writeFile(bundle, bytes);
  const tampered = await verify();
  const [finding] = tampered.findings.filter((each) => each.event !== undefined);
  narrator.check(
    `after one bit of ${event} was flipped the verifier names that event`,
    !tampered.ok && finding?.event === event,
    finding === undefined ? 'it found nothing' : findingText(finding),
  );
};

/** Flips the lowest bit of a digit in the first event of an order whose content the export proves. */
const tamper = (bundle: Buffer): { readonly event: string; readonly bytes: Buffer } => {
  const bytes = Buffer.from(bundle);
  for (
    let start = 0, end = bytes.indexOf('\n');
    end >= 0;
    start = end + 1, end = bytes.indexOf('\n', start)
  ) {
    const line = bytes.subarray(start, end).toString('latin1');
    const [, revision, stream] = /"revision":(\d+),"stream":"(cluster-[^"]+)"/.exec(line) ?? [];
    if (stream === undefined || !(line.includes('"shown":"full"') || OF_ITS_PART.test(line))) continue;
    const at = start + line.indexOf('"commandId":"') + '"commandId":"'.length;
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    return { event: `${stream}@${revision ?? ''}`, bytes };
  }
  throw new Error('the export proves the content of no event of an order');
};

/** An event whose leaf is of what its tenant may see, and so of what is shown of it. */
const OF_ITS_PART = /"type":"\w+","v":2\}/;
