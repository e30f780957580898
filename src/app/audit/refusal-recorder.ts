import type { RefusalEvent } from '../../domain/audit/events.ts';
import { defined } from '../../domain/json-tools.ts';
import type { EventCodec } from '../log/event-codec.ts';
import type { EventToAppend } from '../log/event-store.ts';
import { eventId } from '../log/identifiers.ts';
import { commandMetadata, type Actor, type CommandMetadata, type Encrypted } from '../log/metadata.ts';
import type { RecordRejection, RejectionRecord, Runtime } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import type { RequestHash } from '../commands/command.ts';
import type { PersonalMetadata } from '../tenancy/subjects.ts';
import { dayStream, type DayJournal } from './day-journal.ts';
import type { KnownIds } from './known-ids.ts';
import { createRefusalCaps, whoseOf, type RefusalCap, type Suppressed } from './refusal-caps.ts';

/**
 * Records what was refused: a stream per tenant and day, behind the answer, so that no call waits for it or
 * fails with it. What waits is bounded, and so is what a crash can lose: what came in the last second, or since the
 * store
 * does not answer.
 */
export type RefusalRecorder = {
  readonly record: RecordRejection;
  /** Writes what waits, until the signal is aborted; then once more, and returns. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Refusals that wait to be written. */
  waiting(): number;
};

export type RefusalRecorderOptions = {
  readonly journal: DayJournal;
  readonly codec: Pick<EventCodec, 'encode'>;
  readonly requestHash: RequestHash;
  /** Conceals what the caller was told: it may repeat what the caller wrote. */
  readonly conceal: (subjectId: string, text: string) => Promise<Encrypted>;
  /** Which ids may be told in clear. */
  readonly knownIds: KnownIds;
  /** Conceals who called and from where, as it does for commands that are accepted. */
  readonly personal: Pick<PersonalMetadata, 'personal' | 'source'>;
  /** Of one subject in one tenant, whoever acts for it. Default: 60 at once, then 10 a minute. */
  readonly perSubject?: RefusalCap;
  /** Of all who did not say who they are. Default: 60 at once, then 60 a minute. */
  readonly strangers?: RefusalCap;
  /** Milliseconds between two writes. Default 1,000. */
  readonly everyMs?: number;
  /** Most refusals that wait; those beyond are counted. Default 1,000. */
  readonly most?: number;
} & Runtime;

export const REFUSAL_CATEGORY = 'refusal';
/** Where counts of refusals that were not recorded one by one are made events. */
const SUPPRESSED_EVERY = 60;
const PER_APPEND = 100;

export const createRefusalRecorder = (options: RefusalRecorderOptions): RefusalRecorder => {
  const { journal, codec, clock, timers, ids, instance, logger, requestHash } = options;
  const everyMs = options.everyMs ?? 1_000;
  const most = options.most ?? 1_000;
  const caps = createRefusalCaps({
    perSubject: options.perSubject ?? { atOnce: 60, perMinute: 10 },
    strangers: options.strangers ?? { atOnce: 60, perMinute: 60 },
    monotonicMs: () => clock.monotonicMs(),
  });
  let waiting: Waiting[] = [];
  const seal = createSeal(options);

  const eventOf = (record: RejectionRecord, { message, named, knowsId }: Sealed): RefusalEvent => ({
    type: 'RequestRefused',
    data: {
      at: record.at,
      subjectId: record.subjectId,
      outcome: record.outcome,
      code: record.code,
      ...defined({ error: record.error }),
      command: record.command,
      ...defined({
        commandId: record.commandId,
        kind: record.kind,
        resourceId: knowsId === true ? record.resourceId : undefined,
        bodyHash: bodyHashOf(record, requestHash),
        fields: record.fields?.(),
        message,
        named,
        told: message === undefined && record.plain === true ? record.message : undefined,
      }),
    },
  });

  const toAppend = (
    stream: string,
    event: RefusalEvent,
    commandId: string,
    metadata: CommandMetadata,
  ): EventToAppend => codec.encode(event, eventId(commandId, stream, 0), metadata);

  const metadataOf = (
    commandId: string,
    record: RejectionRecord,
    { personal, source }: Sealed,
  ): CommandMetadata =>
    commandMetadata(
      {
        tenant: record.tenant,
        project: record.project ?? '',
        actor: { ...(record.actor ?? ANYBODY), ...defined({ personal }) },
        commandId,
        requestHash: hashOf(record, requestHash),
        correlationId: record.correlationId ?? commandId,
        causationId: record.commandId ?? record.correlationId ?? commandId,
        ...defined({ ticket: record.ticket, traceparent: record.traceparent, source }),
      },
      'RecordRefusal',
      record.at,
      instance,
    );

  /** Writes the oldest ones; false when the store does not take them now. */
  const writeSome = async (): Promise<boolean> => {
    const first = waiting[0];
    if (first === undefined) return true;
    const stream = streamOf(first.record);
    const batch = waiting.filter(({ record }) => streamOf(record) === stream).slice(0, PER_APPEND);
    try {
      const entries = await Promise.all(
        batch.map(async (each) => {
          const { id, record } = each;
          const sealed = await seal(each);
          return toAppend(stream, eventOf(record, sealed), id, metadataOf(id, record, sealed));
        }),
      );
      await journal.append(stream, entries);
    } catch (error) {
      logger.warn({ err: error, waiting: waiting.length }, 'refusals not recorded; retrying later');
      return false;
    }
    const written = new Set(batch);
    waiting = waiting.filter((each) => !written.has(each));
    return true;
  };

  const writeSuppressed = async (): Promise<void> => {
    const suppressed = caps.take();
    for (const [index, each] of suppressed.entries()) {
      const { tenant, actor: _actor, ...data } = each;
      const at = clock.now();
      const stream = dayStream(REFUSAL_CATEGORY, tenant, at);
      const id = ids.uuidv7();
      const record = { ...asRecord(each), at };
      const event: RefusalEvent = { type: 'RefusalsSuppressed', data: { at, ...data } };
      try {
        await journal.append(stream, [toAppend(stream, event, id, metadataOf(id, record, {}))]);
      } catch (error) {
        caps.putBack(suppressed.slice(index));
        logger.warn({ err: error }, 'counts of refusals not recorded; retrying later');
        return;
      }
    }
  };

  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0 && (await writeSome()));
  };

  return {
    record: (record) => {
      if (!caps.admit(record)) return;
      if (waiting.length >= most) {
        caps.putBack([{ ...suppressedOf(record), count: 1, since: record.at, until: record.at }]);
        return;
      }
      const entry: Waiting = { id: ids.uuidv7(), record, sealed: undefined };
      waiting.push(entry);
      // With the key of now: should the person be erased before it is written, nobody can read it.
      seal(entry).catch(() => undefined);
    },
    run: async (signal) => {
      for (let round = 1; !signal.aborted; round += 1) {
        await pause(timers, everyMs, signal);
        await writeAll();
        if (round % SUPPRESSED_EVERY === 0) await writeSuppressed();
      }
      await writeAll();
      await writeSuppressed();
    },
    waiting: () => waiting.length,
  };
};

type Waiting = {
  readonly id: string;
  readonly record: RejectionRecord;
  sealed: Promise<Sealed> | undefined;
};

/** What of a refusal is personal, as ciphertext. */
type Sealed = {
  readonly message?: Encrypted;
  readonly personal?: Encrypted;
  readonly source?: Encrypted;
  /** The id that the caller wrote, where it may not be told in clear; of somebody unknown nothing is left of it. */
  readonly named?: Encrypted;
  readonly knowsId?: boolean;
};

/** Conceals once what one refusal has to conceal; where that failed it is tried again by the next call. */
const createSeal = ({
  conceal,
  knownIds,
  personal: people,
}: Pick<RefusalRecorderOptions, 'conceal' | 'knownIds' | 'personal'>): ((
  entry: Waiting,
) => Promise<Sealed>) => {
  /** An id of which the log cannot be asked now is one that nothing has. */
  const isKnown = async ({ kind = '', resourceId: id, tenant }: RejectionRecord): Promise<boolean> =>
    id !== undefined && (await knownIds({ kind, id, tenant }).catch(() => false));
  const sealedOf = async (whole: RejectionRecord): Promise<Sealed> => {
    const { subjectId, message, clear, resourceId, ...record } = whole;
    // Nobody's key conceals the words of somebody unknown, and the service has nothing personal.
    if (subjectId === '') return { knowsId: await isKnown(whole) };
    // Before the log is asked, which takes its time: with the key of now.
    const concealed = resourceId === undefined ? undefined : conceal(subjectId, resourceId);
    concealed?.catch(() => undefined);
    const knowsId = isKnown(whole);
    const personal = clear && (await people.personal(subjectId, clear.person));
    const source = record.source ?? (clear && (await people.source(subjectId, clear.source)));
    const sealed = await conceal(subjectId, message);
    const named = (await knowsId) ? undefined : await concealed;
    return { message: sealed, knowsId: named === undefined, ...defined({ named, personal, source }) };
  };
  return (entry) => {
    entry.sealed ??= sealedOf(entry.record).catch((error: unknown) => {
      entry.sealed = undefined;
      throw error;
    });
    return entry.sealed;
  };
};

const ANYBODY: Actor = { subjectId: '', roles: [], authMethod: 'anonymous', via: 'http' };

const streamOf = ({ tenant, at }: RejectionRecord): string => dayStream(REFUSAL_CATEGORY, tenant, at);

const suppressedOf = (record: RejectionRecord): Pick<Suppressed, 'subjectId' | 'tenant' | 'actor'> =>
  record.subjectId === '' ? { tenant: '' } : { ...whoseOf(record), tenant: record.tenant };

const asRecord = ({ subjectId, tenant, actor }: Suppressed): RejectionRecord => ({
  tenant,
  subjectId: subjectId ?? '',
  ...defined({ actor }),
  command: 'RecordRefusal',
  outcome: 'rejected',
  code: 'SUPPRESSED',
  message: '',
  at: '',
});

/** Of all that is known of the request: one without a body has one, too. Counts of several calls have none. */
const hashOf = (record: RejectionRecord, requestHash: RequestHash): string => {
  const { command, kind = '', resourceId = '', correlationId } = record;
  if (correlationId === undefined) return '';
  const bodyHash = bodyHashOf(record, requestHash);
  return bodyHash ?? requestHash({ method: command, route: `${kind}/${resourceId}`, body: null });
};

const bodyHashOf = (
  { requestHash: known, body, command }: RejectionRecord,
  requestHash: RequestHash,
): string | undefined => {
  if (known !== undefined && known !== '') return known;
  return body && requestHash({ method: command, route: '', body: body() });
};
