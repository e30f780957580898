import { expect } from 'chai';
import { Writable } from 'node:stream';
import type { ApiClient } from '../../../src/cli/api-client.ts';
import { followOnKafka } from '../../../src/cli/demo/kafka.ts';
import { removeTopics, type DemoTopics } from '../../../src/cli/demo/kafka-topics.ts';
import { createNarrator } from '../../../src/cli/demo/narrator.ts';

const BROKERS = ['127.0.0.1:9092'];

describe('topics that a demo makes', () => {
  let told: string;
  const stream = new Writable({
    decodeStrings: false,
    write: (part: string, _encoding, done) => {
      told += part;
      done();
    },
  });
  const narrator = createNarrator(stream as unknown as NodeJS.WriteStream);
  let removed: (readonly string[])[];
  const topics: DemoTopics = {
    withRecords: async () => [],
    remove: async (_brokers, names) => void removed.push(names),
  };
  beforeEach(() => {
    told = '';
    removed = [];
  });

  it('are known as soon as they are made, also where nobody can read them then', async () => {
    const made: string[] = [];
    const send = async (): Promise<unknown> => ({ created: ['osac.a', 'osac.b'] });
    const error: unknown = await followOnKafka({
      brokers: BROKERS,
      follow: () => Promise.reject(new Error('no group coordinator')),
      narrator,
      tenant: () => ({}) as ApiClient,
      admin: () => ({ send }) as unknown as ApiClient,
      patienceMs: 1,
      onMade: (names) => made.push(...names),
    }).catch(String);
    expect(error).to.equal('Error: no group coordinator');
    expect(made).to.deep.equal(['osac.a', 'osac.b']);
  });

  it('are removed, those and no others', async () => {
    expect(await removeTopics(BROKERS, ['osac.a', 'osac.b'], topics, narrator)).to.equal(true);
    expect(await removeTopics(BROKERS, [], topics, narrator)).to.equal(true);
    expect(removed).to.deep.equal([['osac.a', 'osac.b']]);
    expect(told).to.equal(
      '   2 topics that this demo had made were removed\n   0 topics that this demo had made were removed\n',
    );
  });

  it('are said to be there still where they cannot be removed, with how to remove them', async () => {
    const away: DemoTopics = { ...topics, remove: () => Promise.reject(new Error('connection refused')) };
    expect(await removeTopics(BROKERS, ['osac.a', 'osac.b'], away, narrator)).to.equal(false);
    expect(told).to.equal(
      "   NOT REMOVED: 2 topics that this demo had made: connection refused. Delete them: kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --delete --topic 'osac\\.a|osac\\.b'\n",
    );
  });
});
