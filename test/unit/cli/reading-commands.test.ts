import { expect } from 'chai';
import { CLUSTERS, clusterOf, page, startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

const web = clusterOf('id-1', 'web', { labels: { env: 'prod', old: 'x' } });

describe('ledgerctl reads resources', () => {
  let cli: CliStub;
  beforeEach(async () => {
    cli = await startCliStub();
  });
  afterEach(() => cli.close());

  describe('get', () => {
    it('follows the pages to the end', async () => {
      const all = Array.from({ length: 1203 }, (_, i) => ({ id: `h${i}`, metadata: { name: `h${i}` } }));
      cli.answers(({ query }) => {
        const [offset, limit] = [Number(query.get('offset')), Number(query.get('limit'))];
        const items = all.slice(offset, offset + limit);
        return { body: { size: items.length, total: all.length, items } };
      });
      expect((await cli.succeeds(['get', 'host_types', '-o', 'name'])).trimEnd().split('\n')).to.have.length(
        1203,
      );
      expect(cli.asked.map(({ query }) => query.get('offset'))).to.deep.equal(['0', '500', '1000']);
      expect(
        (await cli.succeeds(['get', 'ht', '-o', 'name', '--limit', '7'])).trimEnd().split('\n'),
      ).to.have.length(7);
      expect(cli.asked.at(-1)?.query.get('limit')).to.equal('7');
    });

    it('tells an admin whose each cluster is, and nobody who sees one tenant only', async () => {
      cli.holds(web);
      const claims = (groups: string[]) =>
        `x.${Buffer.from(JSON.stringify({ groups })).toString('base64url')}.x`;
      const headOf = async (...argv: string[]) => (await cli.succeeds(argv)).split('\n')[0];
      expect(await headOf('get', 'clusters')).to.match(/^TENANT +ID +NAME/);
      expect(await headOf('--token', claims(['admins']), 'get', 'clusters')).to.match(/^TENANT +ID/);
      expect(await headOf('--token', claims(['/p1/system:viewers']), 'get', 'clusters')).to.match(
        /^ID +NAME/,
      );
      for (const token of ['opaque', 'a.b.c', `a.${Buffer.from('null').toString('base64url')}.c`])
        expect(await headOf('--token', token, 'get', 'clusters'), token).to.match(/^ID +NAME/);
      expect(await headOf('get', 'clusters', '--tenant', 'acme')).to.match(/^ID +NAME/);
    });

    it('passes nothing over when objects are deleted between two pages', async () => {
      let all = Array.from({ length: 700 }, (_, i) => ({ id: `h${i}` }));
      cli.answers(({ query }) => {
        const [offset, limit] = [Number(query.get('offset')), Number(query.get('limit'))];
        if (offset > 0) all = all.filter(({ id }) => !['h3', 'h4'].includes(id));
        const items = all.slice(offset, offset + limit);
        return { body: { size: items.length, total: all.length, items } };
      });
      const seen = (await cli.succeeds(['get', 'ht', '-o', 'name'])).trimEnd().split('\n');
      expect(new Set(seen).size).to.equal(seen.length);
      for (const { id } of all) expect(seen).to.include(`host_type/${id}`);
    });

    it('asks for ids and names as OSAC’s own command line does, and by id for what lists leave out', async () => {
      cli.holds(web);
      await cli.succeeds(['get', 'cluster', 'web']);
      await cli.succeeds(['get', 'clusters', 'web', 'id-1', '--tenant', 'acme', '--filter', 'this.id != ""']);
      expect(cli.filters()).to.deep.equal([
        'this.id == "web" || this.metadata.name == "web"',
        '(this.metadata.tenant == "acme") && ((this.id in ["web", "id-1"] || this.metadata.name in ["web", "id-1"]) && (this.id != ""))',
      ]);
      cli.answers(({ path }) => (path.endsWith('/old') ? { body: { id: 'old' } } : page()));
      expect(await cli.succeeds(['get', 'instance_type', 'old', '-o', 'name'])).to.equal(
        'instance_type/old\n',
      );
    });

    it('who names an object wants it also when lists hide it', async () => {
      cli.answers(() => page({ id: 'v', metadata: { name: 'old' } }));
      await cli.succeeds(['get', 'cluster_version', 'old', '-o', 'name']);
      await cli.succeeds(['get', 'cluster_version', 'old', '-o', 'name', '--private']);
      const mentioned = ['spec.state', 'spec.enabled'].map(
        (field) => `(has(this.${field}) || !has(this.${field}))`,
      );
      expect(cli.filters()).to.deep.equal([
        `(this.id == "old" || this.metadata.name == "old") && (${mentioned.join(' && ')})`,
        'this.id == "old" || this.metadata.name == "old"',
      ]);
    });

    it('says of an id when its object was deleted', async () => {
      const at = '2026-11-22T23:52:20.613Z';
      const details = [{ reason: 'DELETED', metadata: { deleted_at: at } }];
      cli.answers(({ path }) =>
        path.endsWith('/c1') ? { status: 404, body: { code: 5, message: 'not found', details } } : page(),
      );
      for (const argv of [
        ['get', 'cluster', 'c1'],
        ['describe', 'cluster', 'c1'],
        ['delete', 'cluster', 'c1'],
      ]) {
        const { code, err } = await cli.run(argv);
        expect(err).to.match(new RegExp(`^ledgerctl: cluster 'c1' \\(deleted at ${at}\\) not found`));
        expect(code).to.equal(3);
      }
    });

    it('prints what was found, names what was not, and exits with 3', async () => {
      cli.holds(web);
      const { code, out, err } = await cli.run(['get', 'cluster', 'web', 'gone', 'lost', '-o', 'name']);
      expect(out).to.equal('cluster/web\n');
      expect(err).to.equal("ledgerctl: cluster 'gone', 'lost' not found\n");
      expect(code).to.equal(3);
    });

    it('an empty list is said on stderr and is no failure', async () => {
      cli.answers(() => page());
      expect(await cli.run(['get', 'clusters'])).to.deep.equal({
        code: 0,
        out: '',
        err: 'no clusters match\n',
      });
      expect((await cli.run(['get', 'clusters', '-o', 'json'])).out).to.equal('[]\n');
    });

    it('prints JSON and YAML with the type, one object for one, a list for a list', async () => {
      cli.holds(web);
      const type = 'type.googleapis.com/osac.public.v1.Cluster';
      expect(JSON.parse(await cli.succeeds(['get', 'cluster', 'web', '-o', 'json']))).to.deep.equal({
        '@type': type,
        ...web,
      });
      expect(JSON.parse(await cli.succeeds(['get', 'clusters', '-o', 'json']))).to.deep.equal([
        { '@type': type, ...web },
      ]);
      expect(await cli.succeeds(['get', 'clusters', '-o', 'yaml'])).to.match(
        /^"@type": .*\nid: id-1\nmetadata:\n {2}name: web\n/,
      );
    });

    it('names that several have are told apart by id, and take the place of a kind', async () => {
      cli.holds(web, clusterOf('id-2', 'web'), clusterOf('id-3', 'db'));
      const names = (await cli.succeeds(['get', 'clusters', '-o', 'name'])).trimEnd().split('\n');
      expect(names).to.deep.equal(['cluster/id-1', 'cluster/id-2', 'cluster/db']);
      await cli.succeeds(['get', ...names]);
      expect((await cli.run(['get', 'cluster/a', 'b'])).code).to.equal(2);
    });

    it('uses the surface that has the kind, or the one that is cli.asked for', async () => {
      cli.answers(() => page());
      for (const argv of [['hubs'], ['clusters'], ['clusters', '--private']])
        await cli.succeeds(['get', ...argv]);
      expect(cli.asked.map(({ path }) => path)).to.deep.equal([
        '/api/private/v1/hubs',
        CLUSTERS,
        '/api/private/v1/clusters',
      ]);
    });

    it('wrong usage is 2, and nothing is called', async () => {
      for (const [argv, says] of [
        [['get'], "missing required argument 'kind'"],
        [['get', 'volcanoes'], 'unknown kind "volcanoes"'],
        [['get', 'clusters', '-o', 'xml'], 'Allowed choices are table, wide, json, yaml, name'],
        [['get', 'clusters', '--limit', '0'], 'not a whole number above 0'],
        [['get', 'clusters', '--watch', '--limit', '3'], '--watch and --limit exclude each other'],
        [['get', 'clusters', '--timeout', 'soon'], '"soon" is not a time'],
        [['--url', 'nonsense', 'get', 'clusters'], '"nonsense" is not an address'],
        [['get', 'cluster', 'web', '--order', 'id'], '--order is for lists'],
        [['describe', 'cluster'], 'give one kind and the id or name of one object'],
        [['delete', 'cluster'], 'give the ids or names'],
        [['label', 'cluster', 'web'], 'give what to change'],
        [['scale', 'cluster', 'web', 'workers=many'], 'not a whole number'],
        [['scale', 'hub', 'web', 'workers=1'], 'a hub has no node sets'],
        [['scale', 'cluster', 'web', 'db', 'workers=1'], 'give one cluster'],
        [['create'], "required option '-f, --filename <file>'"],
      ] as const) {
        const { code, err, out } = await cli.run(argv);
        expect(err, argv.join(' ')).to.include(says);
        expect({ code, out }, argv.join(' ')).to.deep.equal({ code: 2, out: '' });
      }
      expect(cli.asked).to.deep.equal([]);
    });
  });

  it('kubeconfig and password print the text alone', async () => {
    cli.answers(({ path }) => (path === CLUSTERS ? page(web) : { body: path.split('/').at(-1) }));
    expect(await cli.succeeds(['kubeconfig', 'web'])).to.equal('"kubeconfig"\n');
    expect(await cli.succeeds(['password', 'cluster/web'])).to.equal('"password"\n');
    expect(cli.asked.at(-1)?.path).to.equal(`${CLUSTERS}/id-1/password`);
    expect((await cli.run(['kubeconfig', 'hub/h'])).err).to.include(
      'a hub has no kubeconfig; give a cluster',
    );
    cli.answers(({ path }) => (path === CLUSTERS ? page(web) : undefined));
    expect((await cli.run(['kubeconfig', 'web'])).code).to.equal(3);
  });

  it('get --watch says that what is named is not there yet', async () => {
    let streams = 0;
    cli.answers(({ path }) => {
      if (path === CLUSTERS) return page();
      if (!path.endsWith('/events')) return undefined;
      streams += 1;
      return streams === 1 ? { body: { result: {} } } : { status: 403, body: { message: 'enough' } };
    });
    const { code, out, err } = await cli.run(['get', 'cluster', 'nope', '--watch']);
    expect(err).to.match(/^cluster 'nope' not found yet; waiting for changes\n/);
    expect({ code, out }).to.deep.equal({ code: 1, out: '' });
  });

  describe('exit statuses', () => {
    it('tell refusals, absence, conflicts and an absent service apart', async () => {
      for (const [status, code] of [
        [400, 1],
        [401, 1],
        [403, 1],
        [404, 3],
        [409, 3],
        [412, 3],
        [500, 1],
        [502, 4],
      ] as const) {
        cli.answers(() => ({ status, body: { message: 'no' } }));
        const { code: exit, err } = await cli.run(['get', 'clusters']);
        expect(exit, String(status)).to.equal(code);
        expect(err).to.match(
          new RegExp(`^ledgerctl: GET ${CLUSTERS} answered ${status}: no \\(request r-1\\)\n`),
        );
      }
      const { code, err } = await cli.run(['--url', 'http://127.0.0.1:9', 'get', 'clusters']);
      expect(err).to.equal('ledgerctl: cannot reach http://127.0.0.1:9: is the service running there?\n');
      expect(code).to.equal(4);
    });

    it('a token that is not accepted comes with what to do', async () => {
      cli.answers(() => ({ status: 401, body: { message: 'token is not valid' } }));
      expect((await cli.run(['get', 'clusters'])).err).to.match(
        /\nhint: give a valid token: --token, LEDGERCTL_TOKEN/,
      );
      const message = 'token is not valid: its key id is not one of its issuer';
      cli.answers(() => ({ status: 401, body: { message } }));
      expect((await cli.run(['get', 'clusters'])).err).to.match(
        /\nhint: .*LEDGER_DATA_DIR.*LEDGER_SECRETS_DIR/,
      );
    });
  });

  describe('describe', () => {
    it('shows who, when, spec, conditions and the end of the history', async () => {
      const conditions = [
        {
          type: 'CLUSTER_CONDITION_TYPE_READY',
          status: 'CONDITION_STATUS_TRUE',
          reason: 'AllGood',
          message: 'up',
        },
      ];
      const full = { ...web, status: { ...web.status, conditions } };
      const entry = (n: number) => ({
        position: `s.${n}`,
        at: '2026-01-01T00:00:00Z',
        type: `Event${n}`,
        summary: 'so',
      });
      cli.answers(({ path, query }) => {
        if (!path.endsWith('/timeline')) return page(full);
        return { body: query.get('after') === null ? { items: [entry(1), entry(2), entry(3)] } : {} };
      });
      const out = await cli.succeeds(['describe', 'cluster', 'web', '--timeline', '2']);
      expect(out).to.match(/^cluster web\n {2}id: +id-1\n {2}tenant: +acme\n/);
      expect(out).to.include('labels:  env=prod, old=x');
      expect(out).to.include(
        '\n\nspec:\n  node_sets:\n    workers:\n      host_type: fc430\n      size: 3\n',
      );
      expect(out).to.match(/^CONDITION +STATUS +SINCE +REASON +MESSAGE\nREADY +TRUE +- +AllGood +up$/m);
      expect(out).to.include('Event3').and.not.include('Event1');
    });

    it('what fits on a line stands on one', async () => {
      const interfaces = [{ name: 'nic1', role: 'fabric' }, { name: 'bmc' }];
      cli.answers(() => page({ id: 'h', title: 'A\u001B[31m host', description: 'two\nlines', interfaces }));
      expect(await cli.succeeds(['describe', 'ht', 'h'])).to.equal(
        'host type h\n  id: h\n\ntitle: A\uFFFD[31m host\ndescription: two lines\n\n' +
          'interfaces:\n  - name: nic1\n    role: fabric\n  - name: bmc\n',
      );
    });

    it('a name that several have lists them; one of their ids is enough', async () => {
      cli.holds(web, clusterOf('id-2', 'web', { tenant: 'other', project: 'p' }));
      const { code, err, out } = await cli.run(['describe', 'cluster', 'web']);
      expect(err).to.equal(
        "ledgerctl: 2 clusters have the name 'web'; give the id of one:\n  id-1  tenant acme\n  id-2  tenant other, project p\n",
      );
      expect({ code, out }).to.deep.equal({ code: 1, out: '' });
      expect((await cli.run(['describe', 'cluster', 'id-2', '--timeline', '0'])).code).to.equal(0);
      cli.holds();
      expect(await cli.run(['describe', 'cluster', 'web'])).to.deep.equal({
        code: 3,
        out: '',
        err: "ledgerctl: cluster 'web' not found\n",
      });
    });
  });

  it('every command has help with an example', async () => {
    for (const command of [
      'get',
      'describe',
      'create',
      'apply',
      'label',
      'annotate',
      'scale',
      'attach',
      'detach',
      'delete',
      'kubeconfig',
      'password',
    ]) {
      const { code, out } = await cli.run([command, '--help']);
      expect(out, command).to.match(new RegExp(`^Usage: ledgerctl ${command} `));
      expect(out, command).to.match(new RegExp(`Examples:\n {2}ledgerctl ${command} `));
      expect(code).to.equal(0);
    }
    expect((await cli.run(['--help'])).out).to.match(/Exit status:\n {2}0 {2}done/);
    expect(await cli.succeeds(['kinds'])).to.match(
      /^cluster_template +cluster_templates +ct +LGCUD +LGCUD$/m,
    );
  });
});
