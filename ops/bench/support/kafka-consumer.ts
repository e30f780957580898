/**
 * A consumer as a process of its own: arguments are brokers and topics (comma lists). Prints `ready`, and at the end of
 * its input one JSON line: milliseconds between the time of each record's event and its arrival, by topic.
 */
import { followRecords } from '../../../src/adapters/kafka/record-reader.ts';

const [brokers = '', topics = ''] = process.argv.slice(2);
const delays: Record<string, number[]> = {};
const reader = await followRecords(brokers.split(','), topics.split(','), ({ topic, value }) => {
  if (value === null) return;
  const { time } = JSON.parse(value) as { time: string };
  (delays[topic] ??= []).push(Date.now() - Date.parse(time));
});
process.stdout.write('ready\n');
process.stdin.resume().once('end', () => {
  process.stdout.write(`${JSON.stringify(delays)}\n`, () => void reader.close());
});
