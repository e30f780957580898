import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { expect } from 'chai';
import type { CliActions } from '../../../src/cli/connection.ts';
import { createCli, runCli } from '../../../src/cli/ledgerctl.ts';

const unused = () => Promise.reject(new Error('not in this test'));
const actions: CliActions = {
  serve: unused,
  demo: unused,
  mintToken: async () => 'token',
  checkStore: unused,
  defaultDataDir: 'data',
  eventStore: 'sqlite',
  version: '1',
};

type Asked = {
  readonly verb: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: unknown;
};
type Answer = {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
};

const cluster = (id: string, name: string, metadata: object = {}) => ({
  id,
  metadata: { name, tenant: 'acme', version: 4, ...metadata },
  spec: { node_sets: { workers: { host_type: { id: 'fc430' }, size: 3 }, gpu: { size: 1 } } },
  status: { state: 'CLUSTER_STATE_READY' },
});
const web = cluster('id-1', 'web', { labels: { env: 'prod', old: 'x' } });
const page = (...items: object[]): Answer => ({
  body: items.length === 0 ? {} : { size: items.length, total: items.length, items },
});
const CLUSTERS = '/api/fulfillment/v1/clusters';

describe('ledgerctl about resources', () => {
  let server: Server;
  let url: string;
  let asked: Asked[];
  /** The answer to a call; a missing one is a 404. */
  let answer: (asked: Asked) => Answer | undefined;
  beforeEach(async () => {
    asked = [];
    answer = () => undefined;
    server = createServer((request, response) => {
      void textOf(request).then((body) => {
        const { pathname: path, searchParams: query } = new URL(request.url ?? '', 'http://x');
        const call = {
          verb: request.method ?? '',
          path,
          query,
          headers: request.headers,
          body: body === '' ? undefined : (JSON.parse(body) as unknown),
        };
        asked.push(call);
        const {
          status = 200,
          body: reply = {},
          headers = {},
        } = answer(call) ?? { status: 404, body: { code: 5, message: 'absent' } };
        response.writeHead(status, { 'x-request-id': 'r-1', ...headers }).end(JSON.stringify(reply));
      });
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => server.close());

  const run = async (argv: readonly string[], stdin = '') => {
    let out = '';
    let err = '';
    const io = {
      out: (text: string) => (out += text),
      err: (text: string) => (err += text),
      stdin: async () => stdin,
    };
    const code = await runCli(createCli(actions, io), ['--url', url, ...argv], io);
    return { code, out, err };
  };
  const succeeds = async (argv: readonly string[], stdin?: string): Promise<string> => {
    const { code, out, err } = await run(argv, stdin);
    expect(code, `${argv.join(' ')}: ${err}`).to.equal(0);
    return out;
  };
  const filters = (): (string | null)[] => asked.map(({ query }) => query.get('filter'));
  const calls = (): string[] => asked.map(({ verb, path }) => `${verb} ${path}`);
  const stored = (...objects: ReturnType<typeof cluster>[]): void => {
    answer = ({ verb, path }) => {
      if (verb !== 'GET') return { body: objects[0] };
      if (path === CLUSTERS) return page(...objects);
      const found = objects.find(({ id }) => path === `${CLUSTERS}/${id}`);
      return found === undefined
        ? undefined
        : { body: found, headers: { etag: `"cluster-${found.metadata.version}"` } };
    };
  };

  describe('get', () => {
    it('follows the pages to the end', async () => {
      const all = Array.from({ length: 1203 }, (_, i) => ({ id: `h${i}`, metadata: { name: `h${i}` } }));
      answer = ({ query }) => {
        const [offset, limit] = [Number(query.get('offset')), Number(query.get('limit'))];
        const items = all.slice(offset, offset + limit);
        return { body: { size: items.length, total: all.length, items } };
      };
      expect((await succeeds(['get', 'host_types', '-o', 'name'])).trimEnd().split('\n')).to.have.length(
        1203,
      );
      expect(asked.map(({ query }) => query.get('offset'))).to.deep.equal(['0', '500', '1000']);
      expect(
        (await succeeds(['get', 'ht', '-o', 'name', '--limit', '7'])).trimEnd().split('\n'),
      ).to.have.length(7);
      expect(asked.at(-1)?.query.get('limit')).to.equal('7');
    });

    it('passes nothing over when objects are deleted between two pages', async () => {
      let all = Array.from({ length: 700 }, (_, i) => ({ id: `h${i}` }));
      answer = ({ query }) => {
        const [offset, limit] = [Number(query.get('offset')), Number(query.get('limit'))];
        if (offset > 0) all = all.filter(({ id }) => !['h3', 'h4'].includes(id));
        const items = all.slice(offset, offset + limit);
        return { body: { size: items.length, total: all.length, items } };
      };
      const seen = (await succeeds(['get', 'ht', '-o', 'name'])).trimEnd().split('\n');
      expect(new Set(seen).size).to.equal(seen.length);
      for (const { id } of all) expect(seen).to.include(`host_type/${id}`);
    });

    it('asks for ids and names as OSAC’s own command line does, and by id for what lists leave out', async () => {
      stored(web);
      await succeeds(['get', 'cluster', 'web']);
      await succeeds(['get', 'clusters', 'web', 'id-1', '--tenant', 'acme', '--filter', 'this.id != ""']);
      expect(filters()).to.deep.equal([
        'this.id == "web" || this.metadata.name == "web"',
        '(this.metadata.tenant == "acme") && ((this.id in ["web", "id-1"] || this.metadata.name in ["web", "id-1"]) && (this.id != ""))',
      ]);
      answer = ({ path }) => (path.endsWith('/old') ? { body: { id: 'old' } } : page());
      expect(await succeeds(['get', 'instance_type', 'old', '-o', 'name'])).to.equal('instance_type/old\n');
    });

    it('who names an object wants it also when lists hide it', async () => {
      answer = () => page({ id: 'v', metadata: { name: 'old' } });
      await succeeds(['get', 'cluster_version', 'old', '-o', 'name']);
      await succeeds(['get', 'cluster_version', 'old', '-o', 'name', '--private']);
      const mentioned = ['spec.state', 'spec.enabled'].map(
        (field) => `(has(this.${field}) || !has(this.${field}))`,
      );
      expect(filters()).to.deep.equal([
        `(this.id == "old" || this.metadata.name == "old") && (${mentioned.join(' && ')})`,
        'this.id == "old" || this.metadata.name == "old"',
      ]);
    });

    it('prints what was found, names what was not, and exits with 3', async () => {
      stored(web);
      const { code, out, err } = await run(['get', 'cluster', 'web', 'gone', 'lost', '-o', 'name']);
      expect(out).to.equal('cluster/web\n');
      expect(err).to.equal("ledgerctl: there is no cluster 'gone', 'lost'\n");
      expect(code).to.equal(3);
    });

    it('an empty list is said on stderr and is no failure', async () => {
      answer = () => page();
      expect(await run(['get', 'clusters'])).to.deep.equal({
        code: 0,
        out: '',
        err: 'there are no clusters that match\n',
      });
      expect((await run(['get', 'clusters', '-o', 'json'])).out).to.equal('[]\n');
    });

    it('prints JSON and YAML with the type, one object for one, a list for a list', async () => {
      stored(web);
      const type = 'type.googleapis.com/osac.public.v1.Cluster';
      expect(JSON.parse(await succeeds(['get', 'cluster', 'web', '-o', 'json']))).to.deep.equal({
        '@type': type,
        ...web,
      });
      expect(JSON.parse(await succeeds(['get', 'clusters', '-o', 'json']))).to.deep.equal([
        { '@type': type, ...web },
      ]);
      expect(await succeeds(['get', 'clusters', '-o', 'yaml'])).to.match(
        /^"@type": .*\nid: id-1\nmetadata:\n {2}name: web\n/,
      );
    });

    it('names that several have are told apart by id, and take the place of a kind', async () => {
      stored(web, cluster('id-2', 'web'), cluster('id-3', 'db'));
      const names = (await succeeds(['get', 'clusters', '-o', 'name'])).trimEnd().split('\n');
      expect(names).to.deep.equal(['cluster/id-1', 'cluster/id-2', 'cluster/db']);
      await succeeds(['get', ...names]);
      expect((await run(['get', 'cluster/a', 'b'])).code).to.equal(2);
    });

    it('uses the surface that has the kind, or the one that is asked for', async () => {
      answer = () => page();
      for (const argv of [['hubs'], ['clusters'], ['clusters', '--private']])
        await succeeds(['get', ...argv]);
      expect(asked.map(({ path }) => path)).to.deep.equal([
        '/api/private/v1/hubs',
        CLUSTERS,
        '/api/private/v1/clusters',
      ]);
    });

    it('wrong usage is 2, and nothing is called', async () => {
      for (const [argv, says] of [
        [['get'], "missing required argument 'kind'"],
        [['get', 'volcanoes'], 'there is no kind "volcanoes"'],
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
        const { code, err, out } = await run(argv);
        expect(err, argv.join(' ')).to.include(says);
        expect({ code, out }, argv.join(' ')).to.deep.equal({ code: 2, out: '' });
      }
      expect(asked).to.deep.equal([]);
    });
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
        answer = () => ({ status, body: { message: 'no' } });
        const { code: exit, err } = await run(['get', 'clusters']);
        expect(exit, String(status)).to.equal(code);
        expect(err).to.match(
          new RegExp(`^ledgerctl: GET ${CLUSTERS} answered ${status}: no \\(request r-1\\)\n`),
        );
      }
      const { code, err } = await run(['--url', 'http://127.0.0.1:9', 'get', 'clusters']);
      expect(err).to.equal('ledgerctl: cannot reach http://127.0.0.1:9: is the service running there?\n');
      expect(code).to.equal(4);
    });

    it('a token that is not accepted comes with what to do', async () => {
      answer = () => ({ status: 401, body: { message: 'token is not valid' } });
      expect((await run(['get', 'clusters'])).err).to.match(
        /\nhint: give a valid token: --token, LEDGERCTL_TOKEN/,
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
      answer = ({ path, query }) => {
        if (!path.endsWith('/timeline')) return page(full);
        return { body: query.get('after') === null ? { items: [entry(1), entry(2), entry(3)] } : {} };
      };
      const out = await succeeds(['describe', 'cluster', 'web', '--timeline', '2']);
      expect(out).to.match(/^cluster web\n {2}id: +id-1\n {2}tenant: +acme\n/);
      expect(out).to.include('labels:  env=prod, old=x');
      expect(out).to.include(
        '\n\nspec:\n  node_sets:\n    workers:\n      host_type: fc430\n      size: 3\n',
      );
      expect(out).to.match(/^CONDITION +STATUS +SINCE +REASON +MESSAGE\nREADY +TRUE +- +AllGood +up$/m);
      expect(out).to.include('Event3').and.not.include('Event1');
    });

    it('a name that several have lists them; one of their ids is enough', async () => {
      stored(web, cluster('id-2', 'web', { tenant: 'other', project: 'p' }));
      const { code, err, out } = await run(['describe', 'cluster', 'web']);
      expect(err).to.equal(
        "ledgerctl: 2 clusters have the name 'web'; give the id of one:\n  id-1  tenant acme\n  id-2  tenant other, project p\n",
      );
      expect({ code, out }).to.deep.equal({ code: 1, out: '' });
      expect((await run(['describe', 'cluster', 'id-2', '--timeline', '0'])).code).to.equal(0);
      stored();
      expect(await run(['describe', 'cluster', 'web'])).to.deep.equal({
        code: 3,
        out: '',
        err: "ledgerctl: there is no cluster 'web'\n",
      });
    });
  });

  describe('create and apply', () => {
    const file = 'kind: cluster\nmetadata: {name: web}\n---\nkind: hub\nid: h\n';

    it('send each object to its collection, with a key of its own', async () => {
      answer = ({ body }) => ({ body: { id: 'new', ...(body as object) } });
      expect(await succeeds(['create', '-f', '-'], file)).to.equal('cluster/web created\nhub/h created\n');
      expect(calls()).to.deep.equal([`POST ${CLUSTERS}`, 'POST /api/private/v1/hubs']);
      expect(asked.map(({ body }) => body)).to.deep.equal([{ metadata: { name: 'web' } }, { id: 'h' }]);
      const keys = asked.map(({ headers }) => headers['idempotency-key']);
      for (const key of keys) expect(key).to.match(/^"[0-9a-f-]{36}"$/);
      expect(new Set(keys).size).to.equal(2);
    });

    it('a given key, dry run, tenant and form are passed on', async () => {
      answer = ({ body }) => ({ body: { id: 'new', ...(body as object) } });
      await succeeds(['create', '-f', '-', '--idempotency-key', 'o-1', '--tenant', 't'], file);
      expect(asked.map(({ headers }) => headers['idempotency-key'])).to.deep.equal(['"o-1-1"', '"o-1-2"']);
      expect(asked[0]?.body).to.deep.equal({ metadata: { name: 'web', tenant: 't' } });
      const out = await succeeds(
        ['create', '-f', '-', '--dry-run', '-o', 'json'],
        'kind: cluster\nmetadata: {name: web}',
      );
      expect(JSON.parse(out)).to.deep.include({ id: 'new', metadata: { name: 'web' } });
      expect(asked.at(-1)?.headers['x-dry-run']).to.equal('true');
      expect(await succeeds(['create', '-f', '-', '--dry-run'], file)).to.equal(
        'cluster/web created (dry run)\nhub/h created (dry run)\n',
      );
    });

    it('a wrong file is not sent at all', async () => {
      const { code, err } = await run(['apply', '-f', '-'], `${file}---\nkind: volcano\n`);
      expect(err).to.include('stdin, document 3: there is no kind "volcano"');
      expect(code).to.equal(1);
      expect((await run(['create', '-f', 'no/such.yaml'])).err).to.equal(
        'ledgerctl: cannot read no/such.yaml: ENOENT\n',
      );
      expect(asked).to.deep.equal([]);
    });

    it('the first that is refused ends it, and says what was not tried', async () => {
      answer = () => ({ status: 409, body: { message: 'taken' } });
      const { code, out, err } = await run(['create', '-f', '-'], file);
      expect(err).to.equal(
        `ledgerctl: stdin, document 1 (cluster/web): POST ${CLUSTERS} answered 409: taken (request r-1)\n  1 more of the file was not tried\n`,
      );
      expect({ code, out }).to.deep.equal({ code: 3, out: '' });
      expect(asked).to.have.length(1);
    });

    it('a creation without an answer tells the key that settles it', async () => {
      answer = () => ({ status: 504, body: { message: 'unknown' }, headers: { 'retry-after': '60' } });
      const { code, err } = await run(['create', '-f', '-', '--idempotency-key', 'o-1'], file);
      expect(err)
        .to.include('it may have been created')
        .and.include('--idempotency-key o-1-1\n  1 more of the file');
      expect(code).to.equal(4);
    });

    it('apply says what became of each', async () => {
      stored(web);
      expect(await succeeds(['apply', '-f', '-'], 'kind: cluster\nid: id-1\nspec: {}\n')).to.equal(
        'cluster/web unchanged\n',
      );
      expect(calls()).to.deep.equal([`GET ${CLUSTERS}/id-1`, `PATCH ${CLUSTERS}/id-1`]);
      expect(asked[1]?.headers).to.include({ 'if-match': '"cluster-4"' });
    });

    it('replies that wrap the object are understood', async () => {
      answer = ({ body }) => ({ body: { object: { id: 'idp-1', ...(body as object) } } });
      expect(
        await succeeds(['create', '-f', '-', '-o', 'name'], 'kind: identity_provider\nmetadata: {name: sso}'),
      ).to.equal('identity_provider/sso\n');
    });
  });

  describe('label, annotate and scale', () => {
    it('send the whole map that results, for the state that was read', async () => {
      stored(web);
      expect(await succeeds(['label', 'cluster', 'web', 'old-', 'tier=gold'])).to.equal(
        'cluster/web labelled\n',
      );
      const patch = asked.at(-1);
      expect(patch?.body).to.deep.equal({ metadata: { labels: { env: 'prod', tier: 'gold' } } });
      expect(patch?.headers).to.include({ 'if-match': '"cluster-4"' });
      expect(await succeeds(['label', 'cluster/web', 'env=prod', 'none-'])).to.equal(
        'cluster/web unchanged\n',
      );
      expect(await succeeds(['annotate', 'cluster', 'web', 'owner=a=b'])).to.equal('cluster/web annotated\n');
      expect(asked.at(-1)?.body).to.deep.equal({ metadata: { annotations: { owner: 'a=b' } } });
    });

    it('begin again when somebody else wrote first', async () => {
      let version = 4;
      answer = ({ verb, path, headers }) => {
        if (path === CLUSTERS) return page(web);
        if (verb === 'GET')
          return {
            body: cluster('id-1', 'web', { labels: { [`by-${version}`]: '' } }),
            headers: { etag: `"cluster-${version}"` },
          };
        if (headers['if-match'] === '"cluster-4"') {
          version = 5;
          return { status: 412, body: { message: 'stale' } };
        }
        return { body: web };
      };
      await succeeds(['label', 'cluster', 'web', 'a=b']);
      expect(asked.at(-1)?.body).to.deep.equal({ metadata: { labels: { 'by-5': '', a: 'b' } } });
    });

    it('touch nothing when one of several is unknown', async () => {
      stored(web);
      const { code, err } = await run(['label', 'cluster', 'web', 'gone', 'a=b']);
      expect(err).to.equal("ledgerctl: there is no cluster 'gone'\n");
      expect(code).to.equal(3);
      expect(asked.some(({ verb }) => verb === 'PATCH')).to.equal(false);
    });

    it('scale names only the sizes', async () => {
      stored(web);
      expect(await succeeds(['scale', 'cluster', 'web', 'workers=5', 'gpu=0'])).to.equal(
        'cluster/web scaled: workers=5 gpu=0\n',
      );
      expect(asked.at(-1)?.query.get('update_mask')).to.equal(
        'spec.node_sets.workers.size,spec.node_sets.gpu.size',
      );
      expect(asked.at(-1)?.body).to.deep.equal({
        spec: { node_sets: { workers: { size: 5 }, gpu: { size: 0 } } },
      });
      const { code, err } = await run(['scale', 'cluster', 'web', 'nodes=5']);
      expect(err).to.equal("ledgerctl: cluster/web has no node set 'nodes'; it has workers, gpu\n");
      expect(code).to.equal(3);
    });
  });

  describe('delete', () => {
    it('deletes each once and says so; nothing when one is unknown', async () => {
      stored(web, cluster('id-2', 'db'));
      const { code, err } = await run(['delete', 'cluster', 'web', 'gone']);
      expect(err).to.equal("ledgerctl: there is no cluster 'gone'; nothing was deleted\n");
      expect(code).to.equal(3);
      expect(asked.some(({ verb }) => verb === 'DELETE')).to.equal(false);
      expect(
        await succeeds(['delete', 'cluster', 'web', 'gone', 'id-1', 'db', '--ignore-not-found']),
      ).to.equal('cluster/web deleted\ncluster/db deleted\n');
      expect(calls().filter((call) => call.startsWith('DELETE'))).to.deep.equal([
        `DELETE ${CLUSTERS}/id-1`,
        `DELETE ${CLUSTERS}/id-2`,
      ]);
    });

    it('waits until it is gone, or says that it is not', async () => {
      let looks = 0;
      answer = ({ verb, path }) => {
        if (path === CLUSTERS) return page(web);
        if (verb === 'DELETE') return { body: {} };
        return (looks += 1) < 2 ? { body: web } : undefined;
      };
      expect(await succeeds(['delete', 'cluster', 'web', '--wait'])).to.equal(
        'cluster/web deleted\ncluster/web gone\n',
      );
      stored(web);
      const { code, err } = await run(['delete', 'cluster', 'web', '--wait', '--wait-timeout', '1s']);
      expect(err).to.include('cluster/web is marked for deletion but not gone after 1 s');
      expect(code).to.equal(1);
    });
  });

  it('every command has help with an example', async () => {
    for (const command of ['get', 'describe', 'create', 'apply', 'label', 'annotate', 'scale', 'delete']) {
      const { code, out } = await run([command, '--help']);
      expect(out, command).to.match(new RegExp(`^Usage: ledgerctl ${command} `));
      expect(out, command).to.match(new RegExp(`Examples:\n {2}ledgerctl ${command} `));
      expect(code).to.equal(0);
    }
    expect((await run(['--help'])).out).to.match(/Exit status:\n {2}0 {2}done/);
    expect(await succeeds(['kinds'])).to.match(/^cluster_template +cluster_templates +ct +LGCUD +LGCUD$/m);
  });
});
