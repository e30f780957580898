import { setImmediate } from 'node:timers/promises';
import type { ExportLines } from '../adapters/audit/line-protocol.ts';
import { openSubjectKeyReader } from '../adapters/keys/subject-key-reader.ts';
import { exportPages } from '../app/audit/exports/export-lines.ts';
import { exportProofs } from '../app/audit/exports/export-proofs.ts';
import { createEventCodec } from '../app/log/event-codec.ts';
import { eventTypes, registry } from '../domain/registry.ts';
import { openAuditReader } from '../projections/audit/audit-reader.ts';
import { openLogReader, type LogReaderConfig } from './log-reader-module.ts';
import type { ViewsModuleConfig } from './views-module.ts';

/** How the thread of an export reads; plain JSON, for it crosses a thread. */
export type ExportLinesConfig = {
  readonly log: LogReaderConfig;
  readonly subjectKeys: ViewsModuleConfig['subjectKeys'];
};

/** Lines between two looks at the messages of the thread. */
const SLICE = 64;

/** Entry of the threads of exports: adapters know neither the registry nor the read models. */
export const openExportLines = async (
  { log, subjectKeys: { directory, kek } }: ExportLinesConfig,
  tree: string,
): Promise<ExportLines> => {
  const store = await openLogReader(log);
  const { reader, close } = openAuditReader(tree);
  const words = {
    codec: createEventCodec(eventTypes),
    registry,
    open: openSubjectKeyReader({ directory, kek: Buffer.from(kek, 'base64') }),
  };
  let count = 0;
  const line = async (): Promise<void> => {
    count += 1;
    if (count % SLICE === 0) await setImmediate();
  };
  return {
    pages: (asked) =>
      asked.of === 'proofs'
        ? exportProofs(asked, { tree: reader }, { line })
        : exportPages(asked, { store, tree: reader, words }, { line, signal: new AbortController().signal }),
    close: async () => {
      close();
      await store.close();
    },
  };
};
