import { CHECKPOINT_TYPE } from '../../app/streams/checkpoint-records.ts';
import { eventTypeName } from '../../app/streams/event-records.ts';
import { stateTypeName } from '../../app/streams/state-records.ts';
import type { TopicSpec } from '../../app/streams/stream.ts';
import {
  CHECKPOINTS_TOPIC,
  eventsTopic,
  publicKinds,
  stateTopic,
  topicsOf,
} from '../../app/streams/topics.ts';
import type { EventType } from '../../domain/event-type.ts';
import { isObject, objectAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { AnyKind } from '../../domain/kinds.ts';
import type { Registry } from '../../domain/registry.ts';
import { fieldNotes } from '../openapi/field-notes.ts';
import { record, TEXT } from '../openapi/ledger-schemas.ts';
import { createMessageSchemas, sharedComponents } from '../openapi/message-schemas.ts';
import { MESSAGES } from '../osac/messages.ts';
import {
  meteringEnvelope,
  meteringHeaders,
  ownEnvelope,
  OWN_HEADERS,
  TOMBSTONE_HEADERS,
  SITE,
} from './envelope.ts';
import { eventDataSchema } from './event-schema.ts';
import { METERING_MESSAGES } from './metering-schemas.ts';

const SCHEMAS = '#/components/schemas/';
export const ENCRYPTED = 'Encrypted';

/** Personal data as the log and the topics hold it; nobody can read it once its subject's key was destroyed. */
const ENCRYPTED_SCHEMA = record({
  alg: { const: 'A256GCM' },
  keyId: TEXT,
  nonce: TEXT,
  ct: TEXT,
  tag: TEXT,
});

/** The public document of a kind, with ciphertext where its personal data stands. Schemas on the way there are copied. */
const documentSchema = (
  { personal = [] }: Pick<AnyKind, 'personal'>,
  schema: JsonObject,
  components: { readonly [name: string]: JsonObject },
): JsonObject =>
  personal.reduce<JsonObject>((shown, path) => sealed(shown, path.split('.'), components), schema);

const sealed = (
  schema: JsonObject,
  [head, ...rest]: readonly string[],
  components: { readonly [name: string]: JsonObject },
): JsonObject => {
  if (head === undefined) return { $ref: `${SCHEMAS}${ENCRYPTED}` };
  const resolved = resolve(schema, components);
  const properties = objectAt(resolved, 'properties');
  const inner = (value: JsonValue | undefined): JsonObject =>
    sealed(isObject(value) ? value : {}, rest, components);
  if (head !== '*') return { ...resolved, properties: { ...properties, [head]: inner(properties[head]) } };
  return Array.isArray(resolved['items']) || resolved['items'] !== undefined
    ? { ...resolved, items: inner(resolved['items']) }
    : { ...resolved, additionalProperties: inner(resolved['additionalProperties']) };
};

const resolve = (schema: JsonObject, components: { readonly [name: string]: JsonObject }): JsonObject => {
  const reference = schema['$ref'];
  if (typeof reference !== 'string') return schema;
  return components[reference.slice(SCHEMAS.length)] ?? {};
};

type Streamed = {
  readonly registry: Registry;
  readonly kinds: readonly AnyKind[];
  readonly version: string;
};

type Message = {
  readonly name: string;
  /** What its channel calls it; default: its name. */
  readonly type?: string;
  readonly topic: string;
  readonly headers: JsonObject;
  readonly payload: JsonObject;
  readonly contentType?: string;
  readonly description?: string;
};

const CLOUD_EVENT = 'application/cloudevents+json';

const DESCRIPTION = `Every change of the service as records on Kafka: CloudEvents 1.0 in structured JSON, keyed by the id of what they are
about. Delivery is at least once, in order per key while one publisher works: apply a record when its osacrevision is newer
than the last one seen of its osacstream.`;

/**
 * The AsyncAPI 3 document of all topics, in steps between which other work may be done. Schemas are JSON Schema draft 07,
 * which every AsyncAPI tool reads. Pure: everything comes from the registry of events, the kinds and their messages.
 */
export function* asyncApiSteps({ registry, kinds, version }: Streamed): Generator<undefined, JsonObject> {
  const messages: Message[] = [];
  const schemas = new Map<string, JsonObject>([[ENCRYPTED, ENCRYPTED_SCHEMA]]);
  for (const entry of registry.types) {
    messages.push(...eventMessages(entry));
    yield;
  }
  messages.push(
    ...(yield* stateMessages(kinds, schemas)),
    ...checkpointMessages(registry),
    ...meteringMessages(),
  );
  yield;
  const topics = topicsOf(registry, kinds);
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'fulfillment-ledger',
      version,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: CLOUD_EVENT,
    servers: { kafka: BROKERS },
    channels: Object.fromEntries(topics.map((topic) => [topic.name, channelOf(topic, messages)])),
    operations: Object.fromEntries(
      topics.map(({ name }) => [
        `publish.${name}`,
        { action: 'send', channel: { $ref: `#/channels/${name}` } },
      ]),
    ),
    components: {
      messages: Object.fromEntries(messages.map((message) => [message.name, messageObject(message)])),
      schemas: Object.fromEntries(schemas),
    },
  };
}

const BROKERS: JsonObject = {
  host: '{brokers}',
  protocol: 'kafka',
  description: 'The brokers that LEDGER_KAFKA_BROKERS names.',
  variables: { brokers: { default: 'localhost:9092' } },
};

const eventMessages = (entry: EventType): readonly Message[] => {
  if (entry.audience === 'internal') return [];
  const name = eventTypeName(entry.context, entry.type, entry.version);
  const audience: JsonObject = { osacaudience: { const: entry.audience } };
  return [
    {
      name,
      topic: eventsTopic(entry.context),
      headers: OWN_HEADERS,
      payload: ownEnvelope(name, eventDataSchema(entry), audience, SITE),
    },
  ];
};

function* stateMessages(
  kinds: readonly AnyKind[],
  schemas: Map<string, JsonObject>,
): Generator<undefined, readonly Message[]> {
  const forms = createMessageSchemas(fieldNotes(kinds));
  yield;
  const messages: Message[] = [];
  for (const kind of publicKinds(kinds)) {
    const form = MESSAGES[kind.message]?.public;
    if (form === undefined) continue;
    const schema = forms.ref(form, 'answer');
    const name = stateTypeName(kind.kind);
    const topic = stateTopic(kind.kind);
    const payload = ownEnvelope(name, documentSchema(kind, schema, forms.components()));
    messages.push(
      { name, topic, headers: OWN_HEADERS, payload, description: 'The public document as of this revision.' },
      {
        name: `${name}.gone`,
        topic,
        headers: TOMBSTONE_HEADERS,
        payload: { type: 'null' },
        description: 'A tombstone: no read shows the document of this key any more.',
      },
    );
    yield;
  }
  for (const [name, schema] of Object.entries({ ...forms.components(), ...sharedComponents() }))
    schemas.set(name, schema);
  return messages;
}

const checkpointMessages = (registry: Registry): readonly Message[] => {
  const signed = registry.get('TreeHeadSigned');
  const data: JsonObject = signed === undefined ? { type: 'object' } : eventDataSchema(signed);
  return [
    {
      name: CHECKPOINT_TYPE,
      topic: CHECKPOINTS_TOPIC,
      headers: OWN_HEADERS,
      payload: ownEnvelope(CHECKPOINT_TYPE, data),
      description: 'A signed head of the audit tree; who keeps them notices a history that was rewritten.',
    },
  ];
};

const meteringMessages = (): readonly Message[] =>
  METERING_MESSAGES.map(({ type, name = type, topic, data, ...form }) => ({
    name,
    type,
    topic,
    headers: meteringHeaders(type, form),
    payload: meteringEnvelope(type, data, form),
  }));

const channelOf = (topic: TopicSpec, messages: readonly Message[]): JsonObject => ({
  address: topic.name,
  messages: Object.fromEntries(
    messages
      .filter((message) => message.topic === topic.name)
      .map(({ name, type = name }) => [type, { $ref: `#/components/messages/${name}` }]),
  ),
  bindings: {
    kafka: {
      topic: topic.name,
      partitions: topic.partitions,
      topicConfiguration: { 'cleanup.policy': [topic.cleanup], 'retention.ms': topic.retentionMs },
      bindingVersion: '0.5.0',
    },
  },
});

const messageObject = ({
  name,
  headers,
  payload,
  description,
  contentType = CLOUD_EVENT,
}: Message): JsonObject => ({
  name,
  contentType,
  ...(description === undefined ? {} : { description }),
  headers,
  payload,
  bindings: {
    kafka: { key: { type: 'string', description: 'Id of the aggregate.' }, bindingVersion: '0.5.0' },
  },
});
