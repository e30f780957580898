import type { StoppedLog } from '../../../src/app/audit/bundle/verify-store.ts';
import type { NoteSigner } from '../../../src/app/audit/merkle/note.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { keyOf, ORIGIN, vkey, type History } from './signed-history.ts';

/** The log of a history: its events, the audit key at the beginning, and heads behind what they cover. */
export const signedLog = (
  history: History,
  sizes: readonly number[],
  signer: NoteSigner = keyOf('first'),
): RecordedEvent[] => {
  const bookkeeping = (
    stream: string,
    revision: number,
    position: number,
    type: string,
    data: JsonObject,
  ) => ({
    position: String(position).padStart(16, '0'),
    stream,
    revision,
    id: `${stream}@${revision}`,
    type,
    data,
    metadata: {},
    recordedAt: '2026-11-21T12:00:00.000Z',
  });
  const at = '2026-11-21T00:00:00.000Z';
  return [
    bookkeeping('sys-auditKeys', 0, 0, 'AuditKeyAdded', { at, vkey: vkey(signer) }),
    ...history.events.flatMap((event, place) => {
      const revision = sizes.indexOf(place + 1);
      if (revision < 0) return [event];
      const note = history.noteAt(place + 1, signer);
      const head = bookkeeping('sys-auditTree', revision, 2 * place + 2, 'TreeHeadSigned', { at, note });
      return [event, head];
    }),
  ];
};

/** Events as a log that nobody writes to. */
export const stoppedLog = (events: readonly RecordedEvent[]): StoppedLog => ({
  storeId: ORIGIN.slice(ORIGIN.indexOf('/') + 1),
  readAll: async function* ({ after = '', limit }) {
    const start = after === '' ? 0 : events.findLastIndex(({ position }) => position === after) + 1;
    for (const event of events.slice(start, start + limit)) yield await Promise.resolve(event);
  },
  readStream: async function* (stream) {
    for (const event of events) if (event.stream === stream) yield await Promise.resolve(event);
  },
});
