import { Ajv, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { CloudEvent, Kafka } from 'cloudevents';
import type { KafkaRecord } from '../../../src/app/streams/stream.ts';
import { asyncApiSteps } from '../../../src/http/asyncapi/document.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { registry } from '../../../src/domain/registry.ts';

const addFormats = formats as unknown as (ajv: Ajv) => void;

export const asyncApiDocument = (): JsonObject => {
  const steps = asyncApiSteps({ registry, kinds, version: '0.0.0' });
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
};

/** Checks records against the document: that their topic has their message, and that headers and value are as it says. */
export const asyncApi = (document: JsonObject) => {
  const ajv = new Ajv({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allowUnionTypes: true,
    allErrors: true,
  });
  addFormats(ajv);
  ajv.addFormat('int32', true);
  ajv.addFormat('int64', true);
  // As it stands, so that `#/components/schemas/…` means the document; what is no schema is not looked at.
  ajv.addVocabulary(Object.keys(document));
  ajv.addSchema(document, 'asyncapi');
  const compiled = new Map<string, ValidateFunction>();
  const validator = (pointer: string): ValidateFunction => {
    const known = compiled.get(pointer) ?? ajv.compile({ $ref: `asyncapi#/${pointer}` });
    compiled.set(pointer, known);
    return known;
  };
  const problemsOf = (pointer: string, value: unknown): readonly string[] => {
    const validate = validator(pointer);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  };

  return {
    document,
    /** Names of the messages that a topic may hold. */
    messagesOf: (topic: string): readonly string[] =>
      Object.keys(objectAt(objectAt(objectAt(document, 'channels'), topic), 'messages')),
    /** What is wrong with a record; empty: nothing. */
    problems: (record: KafkaRecord): readonly string[] => {
      const value = record.value === null ? null : (JSON.parse(record.value) as JsonObject);
      const { topic } = record;
      const name = value === null ? `${topic}.gone` : stringAt(value, 'type');
      const channel = objectAt(objectAt(document, 'channels'), topic);
      const messages = objectAt(channel, 'messages');
      if (!Object.hasOwn(messages, name)) return [`${topic} has no message ${name}`];
      const message = stringAt(objectAt(messages, name), '$ref').slice('#/'.length);
      return [
        ...problemsOf(`${message}/headers`, record.headers),
        ...problemsOf(`${message}/payload`, value),
      ];
    },
  };
};

/**
 * The record as an independent library reads it, checked by that library against the specification. OSAC's metering
 * records have no content type, which the library would take for another mode: their value is read by itself.
 */
export const decoded = ({ key, value, headers }: KafkaRecord): CloudEvent<unknown> => {
  if (value === null) throw new Error('a tombstone is no event');
  const event =
    headers['content-type'] === undefined
      ? new CloudEvent(JSON.parse(value) as object, false)
      : Kafka.toEvent({ key, value, headers, body: value } as never);
  const one = (Array.isArray(event) ? event[0] : event) as CloudEvent<unknown>;
  one.validate();
  return one;
};
