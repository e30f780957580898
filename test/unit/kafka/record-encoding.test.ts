import { expect } from 'chai';
import fc from 'fast-check';
import { Partitioners } from 'kafkajs';
import { createRequire } from 'node:module';
import { createPartitioner, Kafka } from '../../../src/adapters/kafka/kafkajs-library.ts';
import { crc32c, encodeRecord, murmur2 } from '../../../src/adapters/kafka/record-encoding.ts';
import { cases, check, checkAsync } from '../../support/property.ts';

const require = createRequire(import.meta.url);
const ENCODING = [
  'kafkajs/src/protocol/recordBatch/record/v0',
  'kafkajs/src/protocol/recordBatch/crc32C',
  'kafkajs/src/protocol/recordBatch/v0',
  'kafkajs/src/protocol/requests/produce/v3/request',
];
/** A module loaded anew; `isPublished`: as it is published, without what stands in its place in this process. */
const loaded = <Exports>(path: string, isPublished: boolean): Exports => {
  const files = (isPublished ? ENCODING : ENCODING.slice(3)).map((name) => require.resolve(name));
  const before = files.map((file) => require.cache[file]);
  for (const file of files) delete require.cache[file];
  try {
    return require(path) as Exports;
  } finally {
    files.forEach((file, i) => {
      const was = before[i];
      if (was === undefined) delete require.cache[file];
      else require.cache[file] = was;
    });
  }
};
const published = <Exports>(path: string): Exports => loaded(path, true);
type Encoder = { readonly buffer: Buffer };

describe('the encoding of records', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.string({ unit: 'grapheme', maxLength: 40 }),
    fc.integer({ min: 0, max: 20_000 }).map((length) => 'ä'.repeat(length)),
  );
  const record = fc.record({
    offsetDelta: fc.oneof(fc.nat(300), fc.nat(2 ** 30)),
    key: text,
    value: fc.option(text),
    headers: fc.dictionary(fc.string({ unit: 'grapheme', maxLength: 30 }), text, { maxKeys: 4 }),
  });

  it('is that of kafkajs, byte for byte', () => {
    const original = published<(record: object) => Encoder>('kafkajs/src/protocol/recordBatch/record/v0');
    check(
      fc.property(record, (plain) => {
        const bytes = encodeRecord(plain);
        expect(bytes.equals(original({ ...plain, timestampDelta: 0 }).buffer)).to.equal(true);
      }),
      { numRuns: cases(300) },
    );
  });

  it('has the sums of kafkajs, and the known one of the standard', () => {
    // RFC 3720 B.4: 32 bytes of zeros; and the usual check value.
    expect(crc32c(Buffer.alloc(32))).to.equal(0x8a9136aa);
    expect(crc32c(Buffer.from('123456789'))).to.equal(0xe3069283);
    const original = published<(bytes: Buffer) => number>('kafkajs/src/protocol/recordBatch/crc32C');
    check(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
        expect(crc32c(bytes)).to.equal(original(Buffer.from(bytes)));
      }),
    );
  });

  it('sends a key to the partition that kafkajs and the Java client send it to', () => {
    // From the tests of Kafka's own clients (UtilsTest.testMurmur2).
    const known = {
      '21': -973932308,
      foobar: -790332482,
      'a-little-bit-long-string': -985981536,
      'a-little-bit-longer-string': -1486304829,
      lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8: -58897971,
      abc: 479470107,
    };
    for (const [key, hash] of Object.entries(known)) expect(murmur2(key), key).to.equal(hash);
    const [ours, original] = [createPartitioner(), Partitioners.DefaultPartitioner()];
    check(
      fc.property(text, fc.integer({ min: 1, max: 50 }), (key, count) => {
        const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({
          partitionErrorCode: 0,
          partitionId,
          leader: 0,
          replicas: [],
          isr: [],
        }));
        const args = { topic: 't', partitionMetadata, message: { key, value: null } };
        expect(ours(args)).to.equal(original(args));
      }),
    );
  });

  it('is what kafkajs sends with in this service, and the requests are the same', async () => {
    expect(Kafka).to.be.a('function');
    type Produce = (request: object) => { encode(): Promise<Encoder> };
    const path = 'kafkajs/src/protocol/requests/produce/v3/request';
    const [ours, theirs] = [loaded<Produce>(path, false), published<Produce>(path)];
    const producer = fc.record({
      // As kafkajs has it: a text.
      producerId: fc.oneof(fc.bigInt({ min: -1n, max: 2n ** 63n - 1n }).map(String), fc.nat()),
      producerEpoch: fc.integer({ min: -1, max: 32_767 }),
      transactionalId: fc.constantFrom(undefined, 'x'),
    });
    const { now } = Date;
    Date.now = () => 1_800_000_000_000;
    try {
      await checkAsync(
        fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 8 }), producer, async (records, by) => {
          const messages = records.map(({ key, value, headers }) => ({ key, value, headers }));
          const request = {
            acks: -1,
            timeout: 30_000,
            ...by,
            compression: 0,
            topicData: [
              {
                topic: 't',
                partitions: [
                  { partition: 2, firstSequence: 7, messages },
                  { partition: 0, firstSequence: 2 ** 31 - 1, messages: messages.slice(0, 1) },
                ],
              },
            ],
          };
          const bytes = (await ours(request).encode()).buffer;
          expect(bytes.equals((await theirs(request).encode()).buffer)).to.equal(true);
        }),
        { numRuns: cases(50) },
      );
    } finally {
      Date.now = now;
    }
    const encode = require('kafkajs/src/protocol/recordBatch/record/v0') as (record: object) => Encoder;
    const plain = { offsetDelta: 1, timestampDelta: 0, key: 'k', value: 'v', headers: {} };
    expect(encode(plain)).to.have.keys('buf', 'buffer', 'size');
  });

  it('leaves to kafkajs what is none of ours', () => {
    const original = published<(of: object) => Encoder>('kafkajs/src/protocol/recordBatch/record/v0');
    const encode = require('kafkajs/src/protocol/recordBatch/record/v0') as (of: object) => Encoder;
    const plain = { offsetDelta: 1, timestampDelta: 0, key: 'k', value: 'v', headers: { h: 'x' } };
    for (const other of [
      { timestampDelta: 5 },
      { key: null },
      { key: Buffer.from('k') },
      { value: Buffer.from([0, 255]) },
      { headers: { h: ['a', 'b'] } },
      { headers: { h: Buffer.from('x') } },
      { headers: undefined },
    ]) {
      const given = { ...plain, ...other };
      expect(encode(given).buffer.equals(original(given).buffer)).to.equal(true);
    }
    const partition = createPartitioner();
    const partitionMetadata = [0, 1, 2].map((partitionId) => ({
      partitionErrorCode: 0,
      partitionId,
      leader: 0,
      replicas: [],
      isr: [],
    }));
    expect(
      partition({ topic: 't', partitionMetadata, message: { key: 'k', value: 'v', partition: 2 } }),
    ).to.equal(2);
    expect(partition({ topic: 't', partitionMetadata, message: { value: 'v' } })).to.be.oneOf([0, 1, 2]);
  });
});
