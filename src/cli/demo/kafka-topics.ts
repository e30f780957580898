import { topicsOf } from '../../app/streams/topics.ts';
import { kinds } from '../../domain/kinds.ts';
import { registry } from '../../domain/registry.ts';
import { counted } from '../output.ts';
import { CannotBegin, type Narrator } from './narrator.ts';

/** What the demo asks brokers about topics; the composition root brings it. */
export type DemoTopics = {
  withRecords(brokers: readonly string[], topics: readonly string[]): Promise<readonly string[]>;
  remove(brokers: readonly string[], topics: readonly string[]): Promise<void>;
};

/**
 * The demo's log is a new one, so that every record which is there already is of another: asked before the service is
 * started, which would add metering and signed heads to them. Throws CannotBegin.
 */
export const needTopicsWithoutRecords = async (
  brokers: readonly string[],
  topics: DemoTopics,
  narrator: Narrator,
): Promise<void> => {
  const names = topicsOf(registry, kinds).map(({ name }) => name);
  const address = brokers.join(',');
  const cannot = (why: string): never => {
    narrator.chapter(`Kafka: a consumer of ${address}`);
    throw new CannotBegin(why);
  };
  const full = await topics
    .withRecords(brokers, names)
    .catch((error: unknown) => cannot(`the brokers do not answer: ${messageOf(error)}`));
  if (full.length === 0) return;
  const [first = ''] = full;
  const others = full.length === 1 ? first : `${first} and ${full.length - 1} more`;
  cannot(
    `topics there hold records of another log already (${others}), of an earlier demo or of a service, which a consumer could not tell from those of this one. Give the demo other brokers, or, if nobody needs any \`osac.\` topic there, delete them: ${deletion(brokers, 'osac\\..*')}. With --remove-topics a demo removes those that it made when it ends.`,
  );
};

/** Removes topics that the demo made, with what it published; those that were there before are left. False: they are there still. */
export const removeTopics = async (
  brokers: readonly string[],
  made: readonly string[],
  topics: DemoTopics,
  narrator: Narrator,
): Promise<boolean> => {
  const which = `${counted(made.length, 'topic')} that this demo had made`;
  try {
    if (made.length > 0) await topics.remove(brokers, made);
  } catch (error) {
    const names = made.map((name) => name.replaceAll('.', '\\.')).join('|');
    narrator.say(`NOT REMOVED: ${which}: ${messageOf(error)}. Delete them: ${deletion(brokers, names)}`);
    return false;
  }
  narrator.say(`${which} ${made.length === 1 ? 'was' : 'were'} removed`);
  return true;
};

/** `topics`: a regular expression. */
const deletion = (brokers: readonly string[], topics: string): string =>
  `kafka-topics.sh --bootstrap-server ${brokers.join(',')} --delete --topic '${topics}'`;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
