import { counted, printable } from '../output.ts';
import type { EventProofAnswer, ProofReport } from './event-proof.ts';
import { ending, findingLines, KEYS, pinText } from './report-text.ts';

const SHOWN: Readonly<Record<ProofReport['proven'], string>> = {
  content: 'with the data and metadata that it shows',
  part: 'with the data and metadata that it shows: all that the tenant may see of it',
  leaf: 'shown as hashes only',
  hash: 'of which you may not see all: its leaf hash is proven, what it is the service says',
};

/** What a check of the proof of one event has shown, for people. */
export const proofText = (
  { event, leaf, index }: EventProofAnswer,
  report: ProofReport,
  hasOwnKeys: boolean,
): string => {
  const { checkpoint, ok, findings, count, proven } = report;
  const keys = hasOwnKeys
    ? KEYS.pinned
    : 'keys: those that the service names: keep them with `ledgerctl audit trust`';
  const lines = [keys, pinText(report, 'the signed head lies')];
  if (!ok || checkpoint === undefined) return ending([...findingLines(findings, count), ...lines], count);
  return [
    `${printable(event)} (${printable(leaf.type)}) is leaf ${index}, ${SHOWN[proven]},`,
    `of the tree of ${counted(checkpoint.size, 'event')} that was signed at ${printable(checkpoint.time)}`,
    ...lines,
    '',
  ].join('\n');
};
