import { expect } from 'chai';
import { CLUSTERS, clusterOf, page, startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

const web = clusterOf('id-1', 'web', { labels: { env: 'prod', old: 'x' } });

describe('ledgerctl changes resources', () => {
  let cli: CliStub;
  beforeEach(async () => {
    cli = await startCliStub();
  });
  afterEach(() => cli.close());

  describe('create and apply', () => {
    const file = 'kind: cluster\nmetadata: {name: web}\n---\nkind: hub\nid: h\n';

    it('send each object to its collection, with a key of its own', async () => {
      cli.answers(({ body }) => ({ body: { id: 'new', ...(body as object) } }));
      expect(await cli.succeeds(['create', '-f', '-'], file)).to.equal(
        'cluster/web created\nhub/h created\n',
      );
      expect(cli.calls()).to.deep.equal([`POST ${CLUSTERS}`, 'POST /api/private/v1/hubs']);
      expect(cli.asked.map(({ body }) => body)).to.deep.equal([{ metadata: { name: 'web' } }, { id: 'h' }]);
      const keys = cli.asked.map(({ headers }) => headers['idempotency-key']);
      for (const key of keys) expect(key).to.match(/^"[0-9a-f-]{36}"$/);
      expect(new Set(keys).size).to.equal(2);
    });

    it('a given key, dry run, tenant and form are passed on', async () => {
      cli.answers(({ body }) => ({ body: { id: 'new', ...(body as object) } }));
      await cli.succeeds(['create', '-f', '-', '--idempotency-key', 'o-1', '--tenant', 't'], file);
      expect(cli.asked.map(({ headers }) => headers['idempotency-key'])).to.deep.equal([
        '"o-1-1"',
        '"o-1-2"',
      ]);
      expect(cli.asked[0]?.body).to.deep.equal({ metadata: { name: 'web', tenant: 't' } });
      const out = await cli.succeeds(
        ['create', '-f', '-', '--dry-run', '-o', 'json'],
        'kind: cluster\nmetadata: {name: web}',
      );
      expect(JSON.parse(out)).to.deep.include({ id: 'new', metadata: { name: 'web' } });
      expect(cli.asked.at(-1)?.headers['x-dry-run']).to.equal('true');
      expect(await cli.succeeds(['create', '-f', '-', '--dry-run'], file)).to.equal(
        'cluster/web created (dry run)\nhub/h created (dry run)\n',
      );
    });

    it('what is shown once is shown, and nothing of it later', async () => {
      const status = { break_glass_credentials: { username: 'acme-break', password: 'pass-1' } };
      const tenant = { id: 't', metadata: { name: 't' }, status };
      const text = 'kind: tenant\nmetadata: {name: t}\n';
      cli.answers(({ verb, path }) => {
        if (verb === 'POST') return { body: tenant };
        return path.endsWith('/tenants') ? page() : undefined;
      });
      const lines = 'break-glass user:     acme-break\nbreak-glass password: pass-1\n';
      for (const verb of ['create', 'apply']) {
        const { out, err } = await cli.run([verb, '-f', '-', '--private'], text);
        expect(out).to.equal(`${lines}tenant/t created\n`);
        expect(err).to.include('not shown again');
      }
      const names = await cli.run(['create', '-f', '-', '-o', 'name'], text);
      expect(names.out).to.equal('tenant/t\n');
      expect(names.err).to.include(lines);
      for (const form of ['yaml', 'json']) {
        const { out, err } = await cli.run(['create', '-f', '-', '-o', form], text);
        expect(out.split('pass-1')).to.have.length(2);
        expect(err).to.equal('');
      }
      expect(await cli.succeeds(['create', '-f', '-', '--dry-run'], text)).to.equal(
        'tenant/t created (dry run)\n',
      );
      cli.answers(() => ({ body: { id: 't', metadata: { name: 't' } } }));
      const repeated = await cli.run(['create', '-f', '-', '--idempotency-key', 'k'], text);
      expect(repeated.out).to.equal('tenant/t created\n');
      expect(repeated.err).to.include('shown by an earlier answer');
    });

    it('apply says of what is being deleted that it goes all the same', async () => {
      cli.holds(clusterOf('id-1', 'web', { deletion_timestamp: '2026-11-21T10:00:00Z' }));
      const { code, out, err } = await cli.run(['apply', '-f', '-'], 'kind: cluster\nid: id-1\nspec: {}\n');
      expect(err)
        .to.include('it is being deleted since 2026-11-21T10:00:00Z')
        .and.include('apply the file again');
      expect({ code, out }).to.deep.equal({ code: 3, out: '' });
      expect(cli.calls().filter((call) => !call.startsWith('GET'))).to.deep.equal([]);
    });

    it('a field that only providers have is a hint to their surface', async () => {
      cli.answers(() => ({ status: 400, body: { code: 3, message: 'unknown field "spec.image"' } }));
      const { err } = await cli.run(['create', '-f', '-'], 'kind: cluster_version\nspec: {image: x}\n');
      expect(err).to.match(/\nhint: .*--private\n$/);
      const already = await cli.run(['create', '-f', '-', '--private'], 'kind: hub\nspec: {imag: x}\n');
      expect(already.err).not.to.include('hint');
    });

    it('a dry run says of what refers to a new object of the file that it is not checked', async () => {
      const three =
        'kind: subnet\nmetadata: {name: front}\nspec: {virtual_network: {name: shop}}\n---\n' +
        'kind: virtual_network\nmetadata: {name: shop}\n---\n' +
        'kind: subnet\nmetadata: {name: other}\nspec: {virtual_network: {name: old}}\n';
      cli.answers(({ verb, body }) => (verb === 'GET' ? page() : { body: { id: 'n', ...(body as object) } }));
      const line = 'subnet/front not checked: its virtual_network/shop is only in this file\n';
      expect(await cli.succeeds(['apply', '-f', '-', '--dry-run'], three)).to.equal(
        `virtual_network/shop created (dry run)\n${line}subnet/other created (dry run)\n`,
      );
      const { out, err } = await cli.run(['apply', '-f', '-', '--dry-run', '-o', 'name'], three);
      expect(out).to.equal('virtual_network/shop\nsubnet/other\n');
      expect(err).to.equal(line);
    });

    it('apply orders objects by what they refer to, and waits for what is not ready', async () => {
      const both =
        'kind: subnet\nmetadata: {name: front}\nspec: {virtual_network: {name: shop}}\n---\n' +
        'kind: virtual_network\nmetadata: {name: shop}\n';
      let refusals = 2;
      const refused = { status: 400, body: { code: 9, message: 'parent is not in READY state' } };
      cli.answers(({ verb, path, body }) => {
        if (verb === 'GET') return { body: page() };
        if (path.endsWith('/subnets') && (refusals -= 1) >= 0) return refused;
        return { body: { id: 'new', ...(body as object) } };
      });
      const { out, err } = await cli.run(['apply', '-f', '-'], both);
      expect(out).to.equal('virtual_network/shop created\nsubnet/front created\n');
      expect(err).to.equal('subnet/front waits for virtual_network/shop\n');
      refusals = Number.MAX_SAFE_INTEGER;
      const late = await cli.run(['apply', '-f', '-', '--wait', '2s'], both);
      expect(late.err).to.include('parent is not in READY state');
      const alone = both.slice(0, both.indexOf('---'));
      const before = cli.asked.length;
      expect((await cli.run(['apply', '-f', '-'], alone)).code).not.to.equal(0);
      expect(cli.asked.length - before, 'a look and one try').to.equal(2);
    });

    it('apply says what of the spec is taken', async () => {
      const violation = { field: 'spec.cidrs', description: 'overlaps' };
      cli.answers(({ verb }) =>
        verb === 'GET'
          ? { body: page() }
          : { status: 409, body: { message: 'overlaps', details: [{ field_violations: [violation] }] } },
      );
      const { err } = await cli.run(
        ['apply', '-f', '-', '--private'],
        'kind: external_ip_pool\nmetadata: {name: p}\n',
      );
      expect(err).to.include('overlaps').and.not.include('does not show it');
    });

    it('a wrong file is not sent at all', async () => {
      const { code, err } = await cli.run(['apply', '-f', '-'], `${file}---\nkind: volcano\n`);
      expect(err).to.include('stdin, document 3: unknown kind "volcano"');
      expect(code).to.equal(2);
      expect((await cli.run(['create', '-f', 'no/such.yaml'])).err).to.equal(
        'ledgerctl: cannot read no/such.yaml: no such file or directory\n',
      );
      expect(cli.asked).to.deep.equal([]);
    });

    it('the first that is refused ends it, and says what was not tried', async () => {
      cli.answers(() => ({ status: 409, body: { message: 'taken' } }));
      const { code, out, err } = await cli.run(['create', '-f', '-'], file);
      expect(err).to.equal(
        `ledgerctl: stdin, document 1 (cluster/web): POST ${CLUSTERS} answered 409: taken (request r-1)\n  1 more of the file was not tried\n`,
      );
      expect({ code, out }).to.deep.equal({ code: 3, out: '' });
      expect(cli.asked).to.have.length(1);
    });

    it('a creation without an answer tells the key that settles it', async () => {
      cli.answers(() => ({ status: 504, body: { message: 'unknown' }, headers: { 'retry-after': '60' } }));
      const { code, err } = await cli.run(['create', '-f', '-', '--idempotency-key', 'o-1'], file);
      expect(err)
        .to.include('it may have been created')
        .and.include('--idempotency-key o-1-1\n  1 more of the file');
      expect(code).to.equal(4);
    });

    it('apply says what became of each', async () => {
      cli.holds(web);
      expect(await cli.succeeds(['apply', '-f', '-'], 'kind: cluster\nid: id-1\nspec: {}\n')).to.equal(
        'cluster/web unchanged\n',
      );
      expect(cli.calls()).to.deep.equal([`GET ${CLUSTERS}/id-1`, `PATCH ${CLUSTERS}/id-1`]);
      expect(cli.asked[1]?.headers).to.include({ 'if-match': '"cluster-4"' });
    });

    it('replies that wrap the object are understood', async () => {
      cli.answers(({ body }) => ({ body: { object: { id: 'idp-1', ...(body as object) } } }));
      expect(
        await cli.succeeds(
          ['create', '-f', '-', '-o', 'name'],
          'kind: identity_provider\nmetadata: {name: sso}',
        ),
      ).to.equal('identity_provider/sso\n');
    });
  });

  describe('label, annotate and scale', () => {
    it('send the whole map that results, for the state that was read', async () => {
      cli.holds(web);
      expect(await cli.succeeds(['label', 'cluster', 'web', 'old-', 'tier=gold'])).to.equal(
        'cluster/web labelled\n',
      );
      const patch = cli.asked.at(-1);
      expect(patch?.body).to.deep.equal({ metadata: { labels: { env: 'prod', tier: 'gold' } } });
      expect(patch?.headers).to.include({ 'if-match': '"cluster-4"' });
      expect(await cli.succeeds(['label', 'cluster/web', 'env=prod', 'none-'])).to.equal(
        'cluster/web unchanged\n',
      );
      expect(await cli.succeeds(['annotate', 'cluster', 'web', 'owner=a=b'])).to.equal(
        'cluster/web annotated\n',
      );
      expect(cli.asked.at(-1)?.body).to.deep.equal({ metadata: { annotations: { owner: 'a=b' } } });
    });

    it('begin again when somebody else wrote first', async () => {
      let version = 4;
      cli.answers(({ verb, path, headers }) => {
        if (path === CLUSTERS) return page(web);
        if (verb === 'GET')
          return {
            body: clusterOf('id-1', 'web', { labels: { [`by-${version}`]: '' } }),
            headers: { etag: `"cluster-${version}"` },
          };
        if (headers['if-match'] === '"cluster-4"') {
          version = 5;
          return { status: 412, body: { message: 'stale' } };
        }
        return { body: web };
      });
      await cli.succeeds(['label', 'cluster', 'web', 'a=b']);
      expect(cli.asked.at(-1)?.body).to.deep.equal({ metadata: { labels: { 'by-5': '', a: 'b' } } });
    });

    it('touch nothing when one of several is unknown', async () => {
      cli.holds(web);
      const { code, err } = await cli.run(['label', 'cluster', 'web', 'gone', 'a=b']);
      expect(err).to.equal("ledgerctl: cluster 'gone' not found\n");
      expect(code).to.equal(3);
      expect(cli.asked.some(({ verb }) => verb === 'PATCH')).to.equal(false);
    });

    it('scale says what it lacks in its own words', async () => {
      for (const [argv, says] of [
        [['x'], 'for example workers=3'],
        [['x', '3'], 'for example workers=3'],
        [['workers=3'], 'for example: scale cluster web workers=3'],
      ] as const) {
        const { code, err } = await cli.run(['scale', 'cluster', ...argv]);
        expect(err, argv.join(' ')).to.include(says);
        expect(code).to.equal(2);
      }
    });

    it('scale names only the sizes', async () => {
      cli.holds(web);
      expect(await cli.succeeds(['scale', 'cluster', 'web', 'workers=5', 'gpu=0'])).to.equal(
        'cluster/web scaled: workers=5 gpu=0\n',
      );
      expect(cli.asked.at(-1)?.query.get('update_mask')).to.equal(
        'spec.node_sets.workers.size,spec.node_sets.gpu.size',
      );
      expect(cli.asked.at(-1)?.body).to.deep.equal({
        spec: { node_sets: { workers: { size: 5 }, gpu: { size: 0 } } },
      });
      for (const size of ['-1', '1.5', 'many', '1234567890']) {
        const wrong = await cli.run(['scale', 'cluster', 'web', `workers=${size}`]);
        expect(wrong.err).to.include(`"${size}" is not a whole number: 0 or more`);
        expect(wrong.code).to.equal(2);
      }
      const { code, err } = await cli.run(['scale', 'cluster', 'web', 'nodes=5']);
      expect(err).to.equal("ledgerctl: cluster/web has no node set 'nodes'; it has workers, gpu\n");
      expect(code).to.equal(3);
    });
  });

  describe('attach and detach', () => {
    const [IPS, ATTACHMENTS] = ['external_ips', 'external_ip_attachments'].map(
      (collection) => `/api/fulfillment/v1/${collection}`,
    );
    const ip = { id: 'ip-1', metadata: { name: 'public', tenant: 't1', project: 'p' } };
    const attachment = { id: 'a-1', metadata: { name: 'public' } };

    it('attach names both by id, and the attachment as its external IP', async () => {
      cli.answers(({ verb, path }) => {
        if (verb === 'POST') return { body: attachment };
        return path === IPS ? page(ip) : path === CLUSTERS ? page(web) : undefined;
      });
      expect(await cli.succeeds(['attach', 'public', 'cluster/web', '--endpoint', 'ingress'])).to.equal(
        'external_ip/public attached to cluster/web, ingress (external_ip_attachment/public)\n',
      );
      expect(cli.calls().at(-1)).to.equal(`POST ${ATTACHMENTS}`);
      expect(cli.asked.at(-1)?.body).to.deep.equal({
        metadata: { name: 'public', tenant: 't1', project: 'p' },
        spec: {
          external_ip: { id: 'ip-1' },
          cluster: { id: 'id-1' },
          target_endpoint: 'EXTERNAL_IP_ATTACHMENT_ENDPOINT_INGRESS',
        },
      });
      expect(cli.asked.at(-1)?.headers['idempotency-key']).to.match(/^"[0-9a-f-]{36}"$/);
      const { code, err } = await cli.run(['attach', 'public', 'web']);
      expect(err).to.include('"web" is not of the form kind/name, for example cluster/shop');
      expect(code).to.equal(2);
    });

    it('attach of a cluster says which option is missing, and asks nobody', async () => {
      cli.answers(() => undefined);
      const { code, err } = await cli.run(['attach', 'public', 'cluster/web']);
      expect(err).to.include('a cluster needs --endpoint: api or ingress');
      expect(code).to.equal(2);
      expect(cli.calls().filter((call) => call.startsWith('POST'))).to.deep.equal([]);
    });

    it('detach deletes the attachment of the external IP', async () => {
      const held = { attached: true };
      cli.answers(({ path }) => {
        if (path === IPS) return page(ip);
        return path === ATTACHMENTS ? (held.attached ? page(attachment) : page()) : {};
      });
      expect(await cli.succeeds(['detach', 'public'])).to.equal(
        'external_ip/public detached (external_ip_attachment/public deleted)\n',
      );
      expect(cli.calls().at(-1)).to.equal(`DELETE ${ATTACHMENTS}/a-1`);
      const asked = cli.asked.find(({ path }) => path === ATTACHMENTS);
      expect(asked?.query.get('filter')).to.equal('this.spec.external_ip.id == "ip-1"');
      held.attached = false;
      const { code, err } = await cli.run(['detach', 'public']);
      expect(err).to.include('external_ip/public is not attached');
      expect(code).to.equal(3);
    });
  });

  describe('delete', () => {
    it('deletes each once and says so; nothing when one is unknown', async () => {
      cli.holds(web, clusterOf('id-2', 'db'));
      const { code, err } = await cli.run(['delete', 'cluster', 'web', 'gone']);
      expect(err).to.equal("ledgerctl: cluster 'gone' not found; nothing was deleted\n");
      expect(code).to.equal(3);
      expect(cli.asked.some(({ verb }) => verb === 'DELETE')).to.equal(false);
      expect(
        await cli.succeeds(['delete', 'cluster', 'web', 'gone', 'id-1', 'db', '--ignore-not-found']),
      ).to.equal('cluster/web deleted\ncluster/db deleted\n');
      expect(cli.calls().filter((call) => call.startsWith('DELETE'))).to.deep.equal([
        `DELETE ${CLUSTERS}/id-1`,
        `DELETE ${CLUSTERS}/id-2`,
      ]);
    });

    it('a dry run says so, and deletes and waits for nothing', async () => {
      cli.holds(web);
      const out = await cli.succeeds(['delete', 'cluster', 'web', '--dry-run', '--wait']);
      expect(out).to.equal('cluster/web deleted (dry run)\n');
      const sent = cli.asked.filter(({ verb }) => verb === 'DELETE');
      expect(sent.map(({ headers }) => headers['x-dry-run'])).to.deep.equal(['true']);
    });

    it('ends at the first that is refused, and says which were not tried', async () => {
      cli.answers(({ verb, path }) => {
        if (path === CLUSTERS) return page(web, clusterOf('id-2', 'db'), clusterOf('id-3', 'ci'));
        return verb === 'DELETE' && path.endsWith('/id-2')
          ? { status: 400, body: { message: 'in use' } }
          : {};
      });
      const { code, out, err } = await cli.run(['delete', 'cluster', 'web', 'db', 'ci']);
      expect(out).to.equal('cluster/web deleted\n');
      expect(err).to.equal(
        `ledgerctl: cluster/db was not deleted: DELETE ${CLUSTERS}/id-2 answered 400: in use (request r-1)\n  not tried: cluster/ci\n`,
      );
      expect(code).to.equal(1);
    });

    it('waits until it is gone, or says that it is not', async () => {
      let looks = 0;
      cli.answers(({ verb, path }) => {
        if (path === CLUSTERS) return page(web);
        if (verb === 'DELETE') return { body: {} };
        return (looks += 1) < 2 ? { body: web } : undefined;
      });
      expect(await cli.succeeds(['delete', 'cluster', 'web', '--wait'])).to.equal(
        'cluster/web deleted\ncluster/web gone\n',
      );
      cli.holds(web);
      const { code, err } = await cli.run(['delete', 'cluster', 'web', '--wait', '--wait-timeout', '1s']);
      expect(err).to.include('cluster/web is marked for deletion but not gone after 1 s');
      expect(code).to.equal(1);
    });
  });
});
