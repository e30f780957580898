import type { KafkaStatus, RetriedStream } from '../../http/ledger/kafka-operations.ts';
import type { ApiClient } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { CliFailure, EXIT, notFound } from '../exit.ts';
import { counted, printable } from '../output.ts';
import { KAFKA, NO_BROKERS, standbyOf } from './kafka-status.ts';

/** Neither: everything that is parked. */
export type RetryOptions = { readonly topic: string | undefined; readonly stream: string | undefined };

type Wanted = { readonly topic: string; readonly stream: string };

/** One stream after the other. Throws what the service answers otherwise: what comes behind it waits still. */
export const retryParked = async (
  client: ApiClient,
  { topic, stream }: RetryOptions,
  io: Connection['io'],
): Promise<number> => {
  const isOne = topic !== undefined && stream !== undefined;
  const wanted: readonly Wanted[] = isOne ? [{ topic, stream }] : await parkedOf(client, topic);
  if (wanted.length === 0) {
    if (topic !== undefined) throw notFound(`topic ${topic} has not parked any stream`);
    io.err('nothing is parked\n');
    return EXIT.done;
  }
  let status: number = EXIT.done;
  for (const each of wanted) {
    const answer = await client.send<RetriedStream>('POST', retryPath(each));
    const name = isOne ? each.stream : `${each.topic}: ${each.stream}`;
    if (answer.published) io.out(`${name}: ${counted(answer.records ?? 0, 'record')} published\n`);
    else {
      const why = printable(answer.error ?? '');
      io.out(`${name} is parked still, at revision ${answer.revision ?? 0}: ${why}\n`);
      status = EXIT.failed;
    }
  }
  return status;
};

const retryPath = ({ topic, stream }: Wanted): string =>
  `${KAFKA}/topics/${encodeURIComponent(topic)}/parked/${encodeURIComponent(stream)}/retry`;

const parkedOf = async (client: ApiClient, only: string | undefined): Promise<readonly Wanted[]> => {
  const { configured, publishing, owner, topics } = await client.get<KafkaStatus>(KAFKA);
  if (!configured) throw new CliFailure(EXIT.failed, NO_BROKERS);
  if (!publishing) throw new CliFailure(EXIT.unavailable, standbyOf({ owner }));
  if (only !== undefined && !topics.some(({ topic }) => topic === only))
    throw notFound(`topic ${only} not found; ledgerctl kafka status lists them`);
  return topics
    .filter(({ topic }) => only === undefined || topic === only)
    .flatMap(({ topic, parked = [] }) => parked.map(({ stream }) => ({ topic, stream })));
};
