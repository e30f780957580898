import { expect } from 'chai';
import { parse as parseYaml } from 'yaml';
import { kinds } from '../../../src/domain/kinds.ts';
import {
  callerOf,
  seedCatalogue,
  startTestService,
  type TestService,
  type TokenOptions,
} from '../../support/http/service.ts';
import { startCli } from '../../support/cli/in-process.ts';
import { eventually } from '../../support/eventually.ts';

type Shown = {
  readonly id: string;
  readonly metadata: {
    readonly name: string;
    readonly version?: number;
    readonly labels?: object;
    readonly annotations?: object;
  };
  readonly spec: { readonly node_sets: Record<string, object> };
};

/** The commands against the service itself, over HTTP: what both say must fit together. */
describe('ledgerctl with the service', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
    await seedCatalogue(callerOf(service, await service.token({ admin: true, user: 'root' })));
  });
  after(() => service.close());

  const start = (who: TokenOptions, argv: readonly string[], stdin = '', interrupted?: AbortSignal) => {
    const access = service.token(who).then((token) => ({ url: service.url, token }));
    return startCli(access, argv, stdin, interrupted);
  };
  const alice: TokenOptions = { tenants: ['t1'], user: 'alice' };
  const bob: TokenOptions = { tenants: ['t2'], user: 'bob' };
  const root: TokenOptions = { admin: true, user: 'root' };

  const run = async (who: TokenOptions, argv: readonly string[], stdin?: string) => {
    const { said, ended } = start(who, argv, stdin);
    return { code: await ended, ...said };
  };
  const succeeds = async (who: TokenOptions, argv: readonly string[], stdin?: string): Promise<string> => {
    const { code, out, err } = await run(who, argv, stdin);
    expect(code, `${argv.join(' ')}: ${err}`).to.equal(0);
    return out;
  };
  const json = async <T>(who: TokenOptions, ...argv: string[]): Promise<T> =>
    JSON.parse(await succeeds(who, [...argv, '-o', 'json'])) as T;
  const file = (name: string, more = ''): string =>
    `kind: cluster\nmetadata: {name: ${name}, labels: {env: test}}\nspec: {template: {name: small}${more}}\n`;
  let watching: ReturnType<typeof start> | undefined;
  let stop: AbortController | undefined;
  const watch = (who: TokenOptions, ...argv: string[]) => {
    stop = new AbortController();
    return (watching = start(who, argv, '', stop.signal));
  };
  afterEach(async () => {
    stop?.abort();
    await watching?.ended;
    watching = undefined;
  });
  const until = (what: string, holds: () => boolean): Promise<void> =>
    eventually(() => `${what}; on stderr: ${watching?.said.err}`, holds);

  it('lists every kind that is declared', async () => {
    for (const { collection } of kinds)
      expect(await json<unknown[]>(root, 'get', collection), collection).to.be.an('array');
  });

  it('creates, shows, applies and deletes; what get prints, apply takes', async () => {
    expect(await succeeds(alice, ['create', '-f', '-'], file('life'))).to.equal('cluster/life created\n');
    const again = await run(alice, ['create', '-f', '-'], file('life'));
    expect(again.code).to.equal(3);
    expect(again.err).to.match(/stdin \(cluster\/life\): .* answered 409: .*\n {2}field metadata\.name\n/);
    const yaml = await succeeds(alice, ['get', 'cluster', 'life', '-o', 'yaml']);
    const { metadata } = parseYaml(yaml) as Shown;
    expect(metadata.labels).to.deep.equal({ env: 'test' });
    expect(await succeeds(alice, ['apply', '-f', '-'], yaml)).to.equal('cluster/life unchanged\n');
    const changed = yaml.replace('env: test', 'env: prod');
    expect(await succeeds(alice, ['apply', '-f', '-'], changed)).to.equal('cluster/life configured\n');
    const stale = await run(
      alice,
      ['apply', '-f', '-'],
      yaml.replace(/^( {2}name: life)$/m, '$1\n  version: 17'),
    );
    expect(stale.code, stale.err).to.be.oneOf([1, 3]);
    expect(await succeeds(alice, ['describe', 'cluster', 'life']))
      .to.match(/labels: +env=prod/)
      .and.to.match(/ClusterOrdered/);
    expect(await succeeds(alice, ['delete', 'cluster/life'])).to.equal('cluster/life deleted\n');
    expect(await succeeds(alice, ['get', 'clusters', '--filter', 'this.metadata.name == "nope"'])).to.equal(
      '',
    );
  });

  it('applies a file of several kinds twice: created, then unchanged', async () => {
    const catalogue = `
kind: host_type
id: cli-host
title: Host
---
kind: cluster_template
id: osac.templates.cli_small
title: Small
node_sets: {workers: {host_type: {id: cli-host}, size: 2}}
---
kind: cluster_version
spec: {version: 4.99.1, image: "quay.example/r:4.99"}
`;
    expect(await succeeds(root, ['apply', '-f', '-', '--private'], catalogue)).to.match(
      /^host_type\/cli-host created\ncluster_template\/cli-small created\ncluster_version\/4-99-1-[0-9a-f]{4} created\n$/,
    );
    const second = await succeeds(root, ['apply', '-f', '-', '--private'], catalogue);
    expect(second.match(/ unchanged\n/g), second).to.have.length(3);
    const third = await succeeds(
      root,
      ['apply', '-f', '-', '--private'],
      catalogue.replace('title: Host', 'title: Better host'),
    );
    expect(third).to.match(/^host_type\/cli-host configured\n.* unchanged\n.* unchanged\n$/);
  });

  it('every kind: what get prints is what apply finds unchanged', async () => {
    await succeeds(alice, ['create', '-f', '-'], file('round'));
    const others = `
{kind: disk_image, metadata: {name: cli-image}, spec: {source_type: SOURCE_TYPE_REGISTRY, source_ref: quay.example/i, architecture: [ARCHITECTURE_AMD64]}}
---
{kind: instance_type, metadata: {name: cli-type}, spec: {cores: 4, memory_gib: 16}}
---
{kind: project, metadata: {name: cli-project, tenant: t1}, spec: {title: P}}
---
{kind: secret, metadata: {name: cli-secret, tenant: t1}, data: {key: c2VjcmV0}}
---
{kind: identity_provider, metadata: {name: cli-idp, tenant: t1}, spec: {title: I, enabled: true, oidc: {issuer: "https://i.example", client_id: c, client_secret: s3cret}}}
---
{kind: cluster_catalog_item, metadata: {name: cli-item}, title: Item, template: {name: small}, published: true}
`;
    await succeeds(root, ['apply', '-f', '-', '--private'], others);
    const met: string[] = [];
    for (const { collection, methods } of kinds) {
      if (!methods.private.includes('Update')) continue;
      const yaml = await succeeds(root, ['get', collection, '--private', '-o', 'yaml']);
      const plain = yaml.replaceAll(/^ {2}version: \d+\n/gm, '');
      if (plain === '') continue;
      const said = (await succeeds(root, ['apply', '-f', '-', '--private'], plain)).trimEnd().split('\n');
      expect(
        said.filter((line) => !line.endsWith(' unchanged')),
        collection,
      ).to.deep.equal([]);
      met.push(collection);
    }
    expect(met).to.include.members([
      'clusters',
      'hubs',
      'tenants',
      'projects',
      'secrets',
      'disk_images',
      'identity_providers',
    ]);
  });

  it('a dry run leaves nothing behind', async () => {
    expect(await succeeds(alice, ['create', '-f', '-', '--dry-run'], file('dry'))).to.equal(
      'cluster/dry created (dry run)\n',
    );
    expect((await run(alice, ['get', 'cluster', 'dry'])).code).to.equal(3);
    await succeeds(alice, ['apply', '-f', '-'], file('dry2'));
    expect(await succeeds(alice, ['apply', '-f', '-', '--dry-run'], file('dry2'))).to.equal(
      'cluster/dry2 unchanged (dry run)\n',
    );
    expect(await succeeds(alice, ['label', 'cluster', 'dry2', 'a=b', '--dry-run'])).to.equal(
      'cluster/dry2 labelled (dry run)\n',
    );
    expect((await json<Shown>(alice, 'get', 'cluster', 'dry2')).metadata.labels).to.deep.equal({
      env: 'test',
    });
  });

  it('labels and annotations are set and really removed', async () => {
    await succeeds(alice, ['create', '-f', '-'], file('marked'));
    expect(await succeeds(alice, ['label', 'cluster', 'marked', 'tier=gold', 'env-'])).to.equal(
      'cluster/marked labelled\n',
    );
    expect(await succeeds(alice, ['annotate', 'cluster', 'marked', 'owner=a=b'])).to.equal(
      'cluster/marked annotated\n',
    );
    expect((await json<Shown>(alice, 'get', 'cluster', 'marked')).metadata).to.deep.include({
      labels: { tier: 'gold' },
    });
    await succeeds(alice, ['label', 'cluster', 'marked', 'tier-']);
    const { metadata } = await json<Shown>(alice, 'get', 'cluster', 'marked');
    expect(metadata.labels, 'the last one too').to.equal(undefined);
    expect(metadata.annotations).to.deep.include({ owner: 'a=b' });
    expect(await succeeds(alice, ['label', 'cluster', 'marked', 'tier-'])).to.equal(
      'cluster/marked unchanged\n',
    );
    const refused = await run(alice, ['label', 'cluster', 'marked', 'UPPER=x']);
    expect(refused.err).to.match(/answered 400: .*UPPER/);
    expect(refused.code).to.equal(1);
  });

  it('labels that several set at the same time are all there', async () => {
    await succeeds(alice, ['create', '-f', '-'], file('busy'));
    const keys = ['a', 'b', 'c', 'd'];
    await Promise.all(keys.map((key) => succeeds(alice, ['label', 'cluster', 'busy', `${key}=1`])));
    expect((await json<Shown>(alice, 'get', 'cluster', 'busy')).metadata.labels).to.have.all.keys(
      ...keys,
      'env',
    );
  });

  it('scale changes the size and nothing beside it', async () => {
    await succeeds(alice, ['create', '-f', '-'], file('sized'));
    expect(await succeeds(alice, ['scale', 'cluster', 'sized', 'workers=5'])).to.equal(
      'cluster/sized scaled: workers=5\n',
    );
    const { workers } = (await json<Shown>(alice, 'get', 'cluster', 'sized')).spec.node_sets;
    expect(workers).to.deep.equal({ host_type: { id: 'fc430', name: 'fc430' }, size: 5 });
    expect((await run(alice, ['scale', 'cluster', 'sized', 'none=5'])).code).to.equal(3);
  });

  it('the same key and file create one object', async () => {
    const argv = ['create', '-f', '-', '--idempotency-key', 'order-1', '-o', 'json'];
    const [one, two] = [await succeeds(alice, argv, file('once')), await succeeds(alice, argv, file('once'))];
    expect((JSON.parse(one) as Shown).id).to.equal((JSON.parse(two) as Shown).id);
  });

  it('what belongs to another tenant is not there; admins see whose it is, and must say which', async () => {
    await succeeds(alice, ['create', '-f', '-'], file('shared-name'));
    await succeeds(bob, ['create', '-f', '-'], file('shared-name'));
    const { id } = await json<Shown>(alice, 'get', 'cluster', 'shared-name');
    for (const wanted of [id, 'only-hers']) {
      const { code, out, err } = await run(bob, ['get', 'cluster', wanted]);
      expect({ code, out, err }).to.deep.equal({
        code: 3,
        out: '',
        err: `ledgerctl: cluster '${wanted}' not found\n`,
      });
    }
    const table = await succeeds(root, ['get', 'cluster', 'shared-name', '--private']);
    expect(table).to.match(/^TENANT +ID +NAME .*\nt\d .*\nt\d /);
    const ambiguous = await run(root, ['describe', 'cluster', 'shared-name']);
    expect(ambiguous.err).to.match(
      /2 clusters have the name 'shared-name'; give the id of one:\n.*tenant t\d\n.*tenant t\d\n/,
    );
    expect(ambiguous.code).to.equal(1);
    expect(await succeeds(root, ['get', 'cluster', 'shared-name', '--tenant', 't2', '-o', 'name'])).to.equal(
      'cluster/shared-name\n',
    );
    expect((await run(bob, ['get', 'hubs'])).code, 'refused').to.equal(1);
  });

  it('filters and orders as it is told', async () => {
    for (const name of ['f-a', 'f-b', 'f-c']) await succeeds(alice, ['create', '-f', '-'], file(name));
    const filter = 'this.metadata.name.startsWith("f-") && this.metadata.labels["env"] == "test"';
    const names = ['get', 'clusters', '-o', 'name', '--filter', filter, '--order', 'metadata.name desc'];
    expect(await succeeds(alice, names)).to.equal('cluster/f-c\ncluster/f-b\ncluster/f-a\n');
    expect(await succeeds(alice, [...names, '--limit', '2'])).to.equal('cluster/f-c\ncluster/f-b\n');
    const wrong = await run(alice, ['get', 'clusters', '--filter', 'this.nope ==']);
    expect(wrong.code).to.equal(2);
    expect(wrong.err).to.match(/answered 400: /);
  });

  it('watches: how it stands, then what changes, again after the connection is lost', async () => {
    await succeeds(alice, ['create', '-f', '-'], file('seen'));
    const names = ['seen', 'born'];
    const { said, ended } = watch(alice, 'get', 'clusters', ...names, '--watch', '-o', 'json');
    const changes = (): { type: string; object: Shown }[] =>
      said.out
        .trimEnd()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as { type: string; object: Shown });
    const told = (): string[] => changes().map(({ type, object }) => `${type} ${object.metadata.name}`);
    await until('the list', () => told().includes('LISTED seen'));
    await succeeds(alice, ['create', '-f', '-'], file('born'));
    await succeeds(alice, ['create', '-f', '-'], file('not-asked-for'));
    await until('the creation', () => told().includes('CREATED born'));
    service.server.closeAllConnections();
    await succeeds(alice, ['label', 'cluster', 'seen', 'later=yes']);
    await until('the change', () => told().includes('UPDATED seen'));
    await succeeds(alice, ['delete', 'cluster', 'born']);
    await until('the end', () => told().includes('DELETED born'));
    stop?.abort();
    expect(await ended).to.equal(0);
    expect(told()).to.deep.equal(['LISTED seen', 'CREATED born', 'UPDATED seen', 'DELETED born']);
    expect(said.err).to.match(/; trying again\n/);
  });

  it('watches with a filter, as a table', async () => {
    await succeeds(alice, ['create', '-f', '-'], file('w-one'));
    const filter = 'this.metadata.name.startsWith("w-")';
    const { said, ended } = watch(alice, 'get', 'clusters', '--filter', filter, '-w');
    await until('the list', () => said.out.includes('w-one'));
    await succeeds(alice, ['create', '-f', '-'], file('x-two'));
    await succeeds(alice, ['create', '-f', '-'], file('w-two'));
    await until('the creation', () => said.out.includes('w-two'));
    stop?.abort();
    expect(await ended).to.equal(0);
    expect(said.out).to.match(/^EVENT +ID +NAME .*\nLISTED +\S+ +w-one .*\nCREATED +\S+ +w-two .*\n$/);
  });
});
