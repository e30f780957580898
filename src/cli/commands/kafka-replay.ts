import type { KafkaReplayLine } from '../../http/ledger/kafka-operations.ts';
import { ApiError, type ApiClient } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { CliFailure, EXIT, exitStatusOf } from '../exit.ts';
import { counted, printable } from '../output.ts';
import { KAFKA } from './kafka-status.ts';

export type ReplayOptions = {
  readonly topic: string;
  readonly name: string;
  readonly from?: string;
  readonly to?: string;
};

/** Shows how far it is and what came of it; says with which status the command ends. Throws when it broke off. */
export const replayTopic = async (
  client: ApiClient,
  { topic, ...request }: ReplayOptions,
  io: Connection['io'],
): Promise<number> => {
  const path = `${KAFKA}/topics/${encodeURIComponent(topic)}/replays`;
  let last: Extract<KafkaReplayLine, { progress: unknown }>['progress'] | undefined;
  let status: number = EXIT.done;
  const waiting = setInterval(() => io.err('waiting for the brokers and the log\n'), WAITING_MS);
  try {
    const { lines } = await client.open<KafkaReplayLine>('POST', path, undefined, request).catch(refused);
    for await (const line of lines) {
      clearInterval(waiting);
      if ('error' in line) {
        const goOn = last?.position === undefined ? '' : `; it goes on with --from ${last.position}`;
        throw new CliFailure(statusOf(line.code), `${printable(line.error)}${goOn}`);
      }
      if ('progress' in line) {
        last = line.progress;
        const at = last.position === undefined ? '' : `, at ${last.position}`;
        io.err(`${counted(last.events, 'event')}, ${counted(last.records, 'record')}${at}\n`);
        continue;
      }
      const { report } = line;
      io.out(`${report.topic}: ${counted(report.records, 'record')} of ${counted(report.events, 'event')}\n`);
      for (const { stream, revision, error } of report.skipped)
        io.err(`left out: ${stream} at revision ${revision}: ${printable(error)}\n`);
      if (report.skipped_events > 0) status = EXIT.failed;
    }
  } finally {
    clearInterval(waiting);
  }
  return status;
};

/** Milliseconds after which it is said, again and again, that nothing came yet. */
const WAITING_MS = 5_000;

const refused = (error: unknown): never => {
  if (!(error instanceof ApiError)) throw error;
  const { code } = (error.body ?? {}) as { readonly code?: unknown };
  const known = STATUSES.get(String(code));
  throw new CliFailure(known ?? exitStatusOf(error), error.message, { cause: error });
};

const STATUSES: ReadonlyMap<string, number> = new Map([
  ['KAFKA_UNREACHABLE', EXIT.unavailable],
  ['KAFKA_FULL', EXIT.unavailable],
  ['KAFKA_CLOSED', EXIT.unavailable],
  ['REPLAY_TARGET_IN_USE', EXIT.notFoundOrConflict],
  ['REPLAY_RUNNING', EXIT.notFoundOrConflict],
]);

const statusOf = (code: string | undefined): number => STATUSES.get(code ?? '') ?? EXIT.failed;
