import {
  decoderOf,
  encoded,
  type Decoder,
  type KafkaConnection,
  type ProtocolRequest,
} from './kafkajs-library.ts';

/**
 * The id of a topic, which the brokers give to each that is made (KIP-516): another one of the same name has another id.
 * kafkajs does not know ids, so that Metadata is asked in version 12 here (Kafka 3.1 and newer; kafka.apache.org/protocol).
 */
const METADATA = 3;
const VERSION = 12;

const UUID_BYTES = 16;
const NO_ID = Buffer.alloc(UUID_BYTES);

/** Of topics that exist; nothing of those that are not known to who leads them, nor where brokers have no ids. */
export const readTopicIds = async (
  connection: KafkaConnection,
  topics: readonly string[],
): Promise<ReadonlyMap<string, string>> => {
  const ids = new Map<string, string>();
  for (const [nodeId, led] of byLeader(connection, topics)) {
    const { versions, connectionPool } = await connection.findBroker({ nodeId });
    if ((versions?.[METADATA]?.maxVersion ?? 0) < VERSION) continue;
    for (const { name, id } of await connectionPool.send(requestOf(led)))
      if (name !== null && id !== undefined) ids.set(name, id);
  }
  return ids;
};

/** Who leads a topic knows of it; others may know of the one before for a moment. */
const byLeader = (
  connection: KafkaConnection,
  topics: readonly string[],
): ReadonlyMap<string, readonly string[]> => {
  const led = new Map<string, string[]>();
  for (const topic of topics) {
    const [first] = connection.findTopicPartitionMetadata(topic);
    const leaders = first === undefined ? {} : connection.findLeaderForPartitions(topic, [first.partitionId]);
    for (const nodeId of Object.keys(leaders)) led.set(nodeId, [...(led.get(nodeId) ?? []), topic]);
  }
  return led;
};

type TopicId = { readonly name: string | null; readonly id: string | undefined };

const requestOf = (topics: readonly string[]): ProtocolRequest<readonly TopicId[]> => ({
  request: {
    apiKey: METADATA,
    apiVersion: VERSION,
    apiName: 'Metadata',
    encode: async () => encoded(bodyOf(topics)),
  },
  response: { decode: async (answer) => idsOf(answer), parse: async (ids) => ids },
});

const NO_TAGS = Buffer.from([0]);
const FALSE = Buffer.from([0]);

/** The tags that end the header, then `[topics] allow_auto_topic_creation include_topic_authorized_operations`. */
export const bodyOf = (topics: readonly string[]): Buffer =>
  Buffer.concat([
    NO_TAGS,
    uvarint(topics.length + 1),
    ...topics.flatMap((topic) => {
      const name = Buffer.from(topic);
      return [NO_ID, uvarint(name.length + 1), name, NO_TAGS];
    }),
    FALSE,
    FALSE,
    NO_TAGS,
  ]);

const uvarint = (value: number): Buffer => {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
};

/** Of an answer behind the number of its request. A topic with an error has no id that counts. */
export const idsOf = (answer: Buffer): readonly TopicId[] => {
  const decoder = decoderOf(answer);
  skipTags(decoder);
  decoder.readInt32(); // throttle_time_ms
  decoder.readUVarIntArray(skipBroker);
  decoder.readUVarIntString(); // cluster_id
  decoder.readInt32(); // controller_id
  return decoder.readUVarIntArray(topicOf) ?? [];
};

const skipBroker = (decoder: Decoder): void => {
  decoder.readInt32(); // node_id
  decoder.readUVarIntString(); // host
  decoder.readInt32(); // port
  decoder.readUVarIntString(); // rack
  skipTags(decoder);
};

const topicOf = (decoder: Decoder): TopicId => {
  const error = decoder.readInt16();
  const name = decoder.readUVarIntString();
  const id = Buffer.from(decoder.readBytes(UUID_BYTES));
  decoder.readBoolean(); // is_internal
  decoder.readUVarIntArray(skipPartition);
  decoder.readInt32(); // topic_authorized_operations
  skipTags(decoder);
  // As Kafka's own tools write it.
  return { name, id: error !== 0 || id.equals(NO_ID) ? undefined : id.toString('base64url') };
};

const skipPartition = (decoder: Decoder): void => {
  decoder.readInt16(); // error_code
  decoder.readInt32(); // partition_index
  decoder.readInt32(); // leader_id
  decoder.readInt32(); // leader_epoch
  // replica_nodes, isr_nodes, offline_replicas
  for (let i = 0; i < 3; i += 1) decoder.readUVarIntArray((each) => each.readInt32());
  skipTags(decoder);
};

/** Not by kafkajs' own, which takes their length for one of a compact string. */
const skipTags = (decoder: Decoder): void => {
  for (let left = decoder.readUVarInt(); left > 0; left -= 1) {
    decoder.readUVarInt(); // tag
    // Not in one expression: `+=` takes the offset from before the length was read.
    const length = decoder.readUVarInt();
    decoder.offset += length;
  }
};
