import { expect } from 'chai';
import { ApiError } from '../../../src/cli/api-client.ts';
import { CliFailure } from '../../../src/cli/exit.ts';
import { applyDocument } from '../../../src/cli/resources/apply.ts';
import { createKindNames } from '../../../src/cli/resources/kind-names.ts';
import type { ResourceApi, UpdateOptions } from '../../../src/cli/resources/resource-api.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { numberAt, objectAt, sameJson } from '../../../src/domain/json-tools.ts';

const cluster = createKindNames(kinds).find('cluster');
const web = (version: number, spec: JsonObject = {}): JsonObject => ({
  id: '1',
  metadata: { name: 'web', version },
  spec,
});

describe('apply', () => {
  let stored: JsonObject[];
  let asked: string[];
  let sent: { body: JsonObject; options: UpdateOptions }[];
  /** Happens just before the next write arrives. */
  let meanwhile: (() => void)[];
  let keys: number;
  beforeEach(() => {
    [stored, asked, sent, meanwhile, keys] = [[], [], [], [], 0];
  });

  const refusal = (status: number): ApiError => new ApiError('PATCH', '/x', status, { message: 'no' });
  const tag = (object: JsonObject): string =>
    `"cluster-${numberAt(objectAt(object, 'metadata'), 'version')}"`;
  const api = {
    surfaceOf: () => 'public',
    list: async (_, { filter = '' } = {}) => {
      asked.push(filter);
      return stored;
    },
    read: async (_, id) => {
      const object = stored.find((candidate) => candidate['id'] === id);
      return object === undefined ? undefined : { object, etag: tag(object) };
    },
    create: async (_, document, { dryRun }) => {
      meanwhile.shift()?.();
      if (stored.length > 0) throw refusal(409);
      const object = { ...document, id: '1', metadata: { ...objectAt(document, 'metadata'), version: 0 } };
      if (dryRun !== true) stored = [object];
      return object;
    },
    update: async (_, id, body, options) => {
      meanwhile.shift()?.();
      sent.push({ body, options });
      const before = stored.find((candidate) => candidate['id'] === id);
      if (before === undefined) throw refusal(404);
      if (options.ifMatch !== undefined && options.ifMatch !== tag(before)) throw refusal(412);
      const version = numberAt(objectAt(before, 'metadata'), 'version');
      if (options.lock === true && numberAt(objectAt(body, 'metadata'), 'version') !== version)
        throw refusal(409);
      const spec = objectAt(body, 'spec');
      const after = sameJson(spec, before['spec']) ? before : { ...before, ...web(version + 1, spec) };
      if (options.dryRun !== true) stored = [after];
      return after;
    },
  } as Partial<ResourceApi> as ResourceApi;

  const apply = (document: JsonObject, dryRun = false) =>
    applyDocument(
      api,
      { kind: cluster, document, where: 'f.yaml' },
      { dryRun, newKey: () => `key-${(keys += 1)}` },
    );
  const failed = async (call: Promise<unknown>): Promise<Error> => {
    const outcome = await call.catch((error: unknown) => error);
    if (outcome instanceof Error) return outcome;
    throw new Error('it succeeded');
  };

  it('creates what is absent, changes what is there, and leaves alone what is so already', async () => {
    const file = { metadata: { name: 'web' }, spec: { size: 1 }, status: { state: 'READY' } };
    expect((await apply(file)).done).to.equal('created');
    expect(Object.keys(stored[0] ?? {}), 'status is not the file’s').not.to.include('status');
    expect((await apply(file)).done).to.equal('unchanged');
    expect((await apply({ ...file, spec: { size: 2 } })).done).to.equal('configured');
    expect(sent.map(({ options: { ifMatch, key } }) => [ifMatch, key])).to.deep.equal([
      ['"cluster-0"', 'key-2'],
      ['"cluster-0"', 'key-3'],
    ]);
    expect(asked[0]).to.equal('this.metadata.name == "web"');
  });

  it('looks by tenant and project where the file says them, and by id alone where it has one', async () => {
    await apply({ metadata: { name: 'a"b', tenant: 't', project: 'p' } });
    expect(asked).to.deep.equal([
      '(this.metadata.name == "a\\"b") && (this.metadata.tenant == "t") && (this.metadata.project == "p")',
    ]);
    stored = [web(3)];
    await apply({ id: '1', spec: { size: 1 } });
    expect(asked).to.have.length(1);
  });

  it('looks again when another write came first', async () => {
    stored = [web(1)];
    meanwhile = [() => void (stored = [web(2)])];
    expect((await apply({ metadata: { name: 'web' }, spec: { size: 1 } })).done).to.equal('configured');
    expect(sent.map(({ options: { ifMatch } }) => ifMatch)).to.deep.equal(['"cluster-1"', '"cluster-2"']);
  });

  it('changes what somebody else created meanwhile, creates what somebody else deleted', async () => {
    meanwhile = [() => void (stored = [web(0)])];
    expect((await apply({ metadata: { name: 'web' }, spec: { size: 1 } })).done).to.equal('configured');
    meanwhile = [() => void (stored = [])];
    expect((await apply({ metadata: { name: 'web' }, spec: { size: 2 } })).done).to.equal('created');
  });

  it('says when something exists that this surface does not show', async () => {
    stored = [web(1)];
    const blind = { ...api, list: async () => [] };
    const file = { kind: cluster, document: { metadata: { name: 'web' } }, where: 'f.yaml' };
    const error = await failed(applyDocument(blind, file, { dryRun: false, newKey: () => 'k' }));
    expect(error).to.be.instanceOf(CliFailure).with.property('status', 3);
    expect(error.message).to.include('it exists, but this surface does not show it');
  });

  it('gives up when others keep writing', async () => {
    let version = 1;
    stored = [web(version)];
    meanwhile = Array.from({ length: 9 }, () => () => void (stored = [web((version += 1))]));
    expect(await failed(apply({ metadata: { name: 'web' }, spec: { size: 1 } }))).to.have.property(
      'status',
      412,
    );
    expect(sent).to.have.length(5);
  });

  it('a file with a version is applied to that version only', async () => {
    stored = [web(4)];
    const error = await failed(apply({ metadata: { name: 'web', version: 3 }, spec: { size: 1 } }));
    expect(error).to.be.instanceOf(CliFailure).with.property('status', 3);
    expect(error.message).to.include('changed since version 3');
    expect(sent[0]?.options).to.include({ lock: true });
    expect((await apply({ metadata: { name: 'web', version: 4 }, spec: { size: 1 } })).done).to.equal(
      'configured',
    );
  });

  it('a dry run says what would be done, and does nothing', async () => {
    const file = { metadata: { name: 'web' }, spec: { size: 1 } };
    expect((await apply(file, true)).done).to.equal('created');
    expect(stored).to.deep.equal([]);
    stored = [web(1)];
    expect((await apply(file, true)).done).to.equal('configured');
    expect(stored).to.deep.equal([web(1)]);
    expect((await apply({ metadata: { name: 'web' }, spec: {} }, true)).done).to.equal('unchanged');
  });

  it('refuses what cannot be found again, and what several are called', async () => {
    expect((await failed(apply({ spec: {} }))).message).to.match(/without "id" and "metadata.name"/);
    stored = [web(1), { ...web(1), id: '2' }];
    expect((await failed(apply({ metadata: { name: 'web' } }))).message).to.match(
      /several have the name 'web' \(1, 2\)/,
    );
  });
});
