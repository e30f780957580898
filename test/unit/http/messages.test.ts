import { expect } from 'chai';
import type { DescMessage } from '@bufbuild/protobuf';
import { kinds } from '../../../src/domain/kinds.ts';
import { publicDocument } from '../../../src/domain/resource.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { MESSAGES, isPlainMessage } from '../../../src/http/osac/messages.ts';

/** Paths of every field, through messages, lists and maps (`*` for an index or key). */
const pathsOf = (schema: DescMessage, prefix = '', depth = 0): string[] =>
  schema.fields.flatMap((field) => {
    const path = `${prefix}${field.name}`;
    const inner = field.message;
    const every = field.fieldKind === 'list' || field.fieldKind === 'map' ? [`${path}.*`] : [];
    if (inner === undefined || !isPlainMessage(inner) || depth > 6) return [path, ...every];
    const below = field.fieldKind === 'message' ? `${path}.` : `${path}.*.`;
    return [path, ...every, ...pathsOf(inner, below, depth + 1)];
  });

const numbersOf = (schema: DescMessage): Record<string, number> =>
  Object.fromEntries(schema.fields.map((field) => [field.name, field.number]));

const covered = (path: string, declared: readonly string[]): boolean =>
  declared.some((prefix) => path === prefix || path.startsWith(`${prefix}.`));

describe('message shapes', () => {
  for (const kind of kinds) {
    const { public: pub, private: priv } = MESSAGES[kind.message] ?? {};

    it(`${kind.message}: declared private-only paths are exactly those that the public message lacks`, () => {
      if (priv === undefined) throw new Error(`${kind.message} has no private message`);
      if (pub === undefined) return expect(kind.methods.public).to.deep.equal([]);
      const shown = pathsOf(pub);
      const hidden = pathsOf(priv).filter((path) => !shown.includes(path));
      for (const path of hidden) expect(covered(path, kind.privateOnly), path).to.equal(true);
      for (const path of kind.privateOnly) expect(hidden, path).to.include(path);
      return expect(shown.filter((path) => !pathsOf(priv).includes(path))).to.deep.equal([]);
    });

    it(`${kind.message}: every declared path exists`, () => {
      const paths = priv === undefined ? [] : pathsOf(priv);
      const declared = [
        ...kind.privateOnly,
        ...kind.immutable,
        ...kind.secrets.map(({ path }) => path),
        ...kind.references.map(({ path }) => path),
      ];
      for (const path of declared) expect(paths, path).to.include(path);
    });
  }

  it('have the field numbers of the sheets', () => {
    const cluster = MESSAGES['Cluster'];
    const status = (side: DescMessage | undefined): DescMessage | undefined =>
      side?.fields.find(({ name }) => name === 'status')?.message;
    const metadata = (side: DescMessage | undefined): DescMessage | undefined =>
      side?.fields.find(({ name }) => name === 'metadata')?.message;
    expect(numbersOf(status(cluster?.public) as DescMessage)).to.include({
      state: 1,
      node_sets: 5,
      api_endpoint: 6,
      ingress_endpoint: 7,
      state_transition_time: 8,
    });
    expect(numbersOf(status(cluster?.private) as DescMessage)).to.include({
      hub: 6,
      api_endpoint: 7,
      ingress_endpoint: 8,
      state_transition_time: 9,
    });
    expect(numbersOf(metadata(cluster?.public) as DescMessage)).to.include({
      creator: 3,
      name: 4,
      tenant: 5,
      version: 9,
    });
    expect(numbersOf(metadata(cluster?.private) as DescMessage)).to.include({
      finalizers: 3,
      creator: 4,
      name: 6,
      project: 10,
    });
    const hub = MESSAGES['Hub']?.private?.fields.find(({ name }) => name === 'spec')?.message;
    expect(numbersOf(hub as DescMessage)).to.include({
      kubeconfig: 3,
      namespace: 4,
      mode: 1000,
      endpoints: 1007,
    });
  });

  it('the public view of a full private document has no private-only path', () => {
    const document: JsonObject = {
      metadata: { finalizers: ['x'], name: 'n' },
      spec: { node_sets: { w: { size: 1, fabric_interface: 'nic' } } },
      status: { hub: 'h' },
    };
    const kind = kinds.find(({ kind: name }) => name === 'cluster');
    expect(publicDocument(document, kind?.privateOnly ?? [])).to.deep.equal({
      metadata: { name: 'n' },
      spec: { node_sets: { w: { size: 1 } } },
      status: {},
    });
  });
});
