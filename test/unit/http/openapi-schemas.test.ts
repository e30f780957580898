import { expect } from 'chai';
import { FileOptionsSchema, UninterpretedOptionSchema } from '@bufbuild/protobuf/wkt';
import { kinds } from '../../../src/domain/kinds.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import { fieldNotes } from '../../../src/http/openapi/field-notes.ts';
import {
  createMessageSchemas,
  sharedComponents,
  type Side,
} from '../../../src/http/openapi/message-schemas.ts';
import { EVENTS, MESSAGES, type Surface } from '../../../src/http/osac/messages.ts';
import { openApi } from '../../support/openapi/document.ts';

/** Messages as schemas, and values held against them as the document's readers would. */
const schemasOf = () => {
  const schemas = createMessageSchemas(fieldNotes(kinds));
  const api = (ref: JsonObject) => {
    const components = { schemas: { ...schemas.components(), ...sharedComponents() } };
    const document = openApi({ paths: {}, components });
    return (value: unknown) => document.problemsOf(ref, value);
  };
  const message = (name: string, surface: Surface, side: Side) => {
    const found = MESSAGES[name]?.[surface];
    if (found === undefined) throw new Error(`no message ${name}`);
    return api(schemas.ref(found, side));
  };
  const properties = (component: string): JsonObject =>
    objectAt(schemas.components()[component], 'properties');
  return { schemas, api, message, properties };
};

describe('schemas of messages', () => {
  describe('numbers of 64 bits', () => {
    const option = (side: Side) => {
      const { schemas, api } = schemasOf();
      return api(schemas.ref(UninterpretedOptionSchema, side));
    };

    it('are decimal text in answers', () => {
      const problems = option('answer');
      expect(
        problems({ positive_int_value: '18446744073709551615', negative_int_value: '-5' }),
      ).to.deep.equal([]);
      expect(problems({ positive_int_value: 5 })).not.to.deep.equal([]);
      expect(problems({ negative_int_value: '5x' })).not.to.deep.equal([]);
    });

    it('may be numbers in requests', () => {
      const problems = option('request');
      expect(problems({ positive_int_value: 5, negative_int_value: '-5' })).to.deep.equal([]);
      expect(problems({ positive_int_value: -5 })).not.to.deep.equal([]);
      expect(problems({ negative_int_value: 1.5 })).not.to.deep.equal([]);
    });

    it('stand beside floating point numbers, which may be none, and bytes', () => {
      const problems = option('answer');
      expect(problems({ double_value: 1.5, string_value: 'YQ==' })).to.deep.equal([]);
      expect(problems({ double_value: 'NaN' })).to.deep.equal([]);
      expect(problems({ double_value: 'many' })).not.to.deep.equal([]);
      expect(problems({ string_value: 'not base64!' })).not.to.deep.equal([]);
    });
  });

  describe('enums', () => {
    it('are names in answers, names or numbers in requests', () => {
      const { schemas, api } = schemasOf();
      const answer = api(schemas.ref(FileOptionsSchema, 'answer'));
      const request = api(schemas.ref(FileOptionsSchema, 'request'));
      expect(answer({ optimize_for: 'SPEED' })).to.deep.equal([]);
      expect(answer({ optimize_for: 1 })).not.to.deep.equal([]);
      expect(request({ optimize_for: 1 })).to.deep.equal([]);
      expect(request({ optimize_for: 'FAST' })).not.to.deep.equal([]);
    });
  });

  it('take null in requests, where it clears, and never show it', () => {
    const { message } = schemasOf();
    expect(message('Cluster', 'public', 'request')({ spec: null, metadata: { labels: null } })).to.deep.equal(
      [],
    );
    expect(message('Cluster', 'public', 'answer')({ spec: null })).not.to.deep.equal([]);
  });

  it('refuse unknown fields on both sides', () => {
    const { message } = schemasOf();
    for (const side of ['answer', 'request'] as const)
      expect(message('Cluster', 'public', side)({ specs: {} })).not.to.deep.equal([]);
  });

  it('tell the types that a template parameter may have', () => {
    const { message } = schemasOf();
    const problems = message('Cluster', 'public', 'request');
    const parameter = (type: string, value: unknown) =>
      problems({
        spec: {
          template_parameters: { p: { '@type': `type.googleapis.com/google.protobuf.${type}`, value } },
        },
      });
    expect(parameter('StringValue', 'x')).to.deep.equal([]);
    expect(parameter('Int64Value', '9007199254740993')).to.deep.equal([]);
    expect(parameter('Int32Value', 'x')).not.to.deep.equal([]);
    expect(parameter('FieldMask', 'a')).not.to.deep.equal([]);
  });

  it('let an event hold one object only', () => {
    const { schemas, api } = schemasOf();
    const problems = api(schemas.ref(EVENTS.private, 'answer'));
    const event = { id: '1', type: 'EVENT_TYPE_OBJECT_CREATED' };
    expect(problems(event)).to.deep.equal([]);
    expect(problems({ ...event, cluster: { id: 'a' } })).to.deep.equal([]);
    expect(problems({ ...event, cluster: { id: 'a' }, hub: { id: 'b' } })).not.to.deep.equal([]);
  });

  describe('secrets of the declarations', () => {
    it('read as three asterisks, and as nothing else', () => {
      const { message } = schemasOf();
      const problems = message('Cluster', 'public', 'answer');
      expect(problems({ spec: { pull_secret: '***' } })).to.deep.equal([]);
      expect(problems({ spec: { pull_secret: '{"auths":{}}' } })).not.to.deep.equal([]);
    });

    it('that are never read have no place in an answer', () => {
      const { message } = schemasOf();
      for (const [name, value] of [
        ['Hub', { spec: { kubeconfig: 'YQ==' } }],
        ['Secret', { data: { key: 'YQ==' } }],
        ['User', { spec: { credentials: { password: 'x' } } }],
        ['IdentityProvider', { spec: { oidc: { client_secret: 'x' } } }],
      ] as const) {
        expect(message(name, 'private', 'request')(value), name).to.deep.equal([]);
        expect(message(name, 'private', 'answer')(value), name).not.to.deep.equal([]);
      }
    });
  });

  it('tell what declarations say of fields', () => {
    const { message, properties } = schemasOf();
    message('ClusterVersion', 'private', 'request');
    message('Cluster', 'public', 'request');
    const version = objectAt(properties('osac.private.v1.ClusterVersionSpecInput'), 'image');
    expect(version['description']).to.include('Never changes after creation');
    const cluster = properties('osac.public.v1.ClusterInput');
    expect(objectAt(cluster, 'status')['readOnly']).to.equal(true);
    const template = objectAt(properties('osac.public.v1.ClusterSpecInput'), 'template');
    expect(template['description'])
      .to.include('cluster template')
      .and.to.include('Never changes after creation');
  });
});
