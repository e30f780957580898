import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { decodeJwt } from 'jose';
import { openDevelopmentIssuer } from '../../src/adapters/identity/development-issuer.ts';
import { logFile } from '../../src/adapters/event-store/sqlite/files.ts';
import type { ApiClient } from '../../src/cli/api-client.ts';
import { ledgerctlOn } from '../support/service/ledgerctl.ts';
import { runMain, startMain, type Run } from '../support/service/run-main.ts';
import {
  CLUSTERS,
  createStack,
  isReady,
  refusal,
  registerNowhere,
  until,
  untilCluster,
  type ClusterBody,
  type Stack,
} from '../support/service/stack.ts';

/** Every command as an operator types it, against a running service. Exit statuses: 0 done, 1 failed, 2 usage, 3 not found or conflict, 4 unavailable. */
describe('ledgerctl', function () {
  this.timeout(180_000);
  let stack: Stack;
  let alice: ApiClient;
  let ready: string;
  let waiting: string;

  before(async () => {
    stack = await createStack('sqlite');
    await stack.start();
    alice = await stack.client({ tenant: 'acme', user: 'alice' });
    await registerNowhere(stack);
    ready = await order('seen', { simulation: 'factor=0.05' });
    waiting = await order('waiting', { 'fulfillment-ledger/zone': 'nowhere' });
    await untilCluster(alice, ready, isReady);
  });
  after(() => stack.dispose());

  const order = async (name: string, annotations: object): Promise<string> =>
    (
      await alice.send<ClusterBody>('POST', CLUSTERS, {
        metadata: { name, annotations },
        spec: { template: { id: 'osac.templates.ocp_ci_small' } },
      })
    ).id;
  const settings = () => ({
    LEDGER_DATA_DIR: stack.dataDir,
    LEDGERCTL_URL: stack.http(),
  });
  /** As a process of its own, with the settings of the service: what `ledgerctl` alone cannot show. */
  const typed = (...argv: string[]): Promise<Run> => runMain(argv, settings());
  const ledgerctl = (...argv: string[]): Promise<Run> => ledgerctlOn(stack)(...argv);
  const succeeds = async (...argv: string[]): Promise<string> => {
    const { code, out, err } = await ledgerctl(...argv);
    expect(code, `${argv.join(' ')}: ${err}${out}`).to.equal(0);
    return out;
  };
  const fails = async (code: number, says: RegExp, ...argv: string[]): Promise<void> => {
    const run = await ledgerctl(...argv);
    expect(run.err, argv.join(' ')).to.match(says);
    expect(run.err, 'no stack').not.to.match(/\n\s+at /);
    expect(run.code, `${argv.join(' ')}: ${run.err}`).to.equal(code);
  };

  it('as a process it reads the settings, writes to its two outputs, and ends with the status', async () => {
    const runs = await Promise.all([
      typed('events', '--stream', `cluster-${ready}`, '--limit', '1'),
      typed('orders', 'cancel', ready),
      typed('nonsense'),
      typed('orders', 'show', 'no-such-order'),
      typed('--url', 'http://127.0.0.1:9', 'orders', 'list'),
      typed(),
    ]);
    expect(
      runs.map(({ code }) => code),
      runs.map(({ err }) => err).join(''),
    ).to.deep.equal([0, 1, 2, 3, 4, 2]);
    const [listed, ...failed] = runs;
    expect(listed?.out).to.match(
      new RegExp(`^\\S+  \\S+  cluster-${ready}@0  ClusterOrdered  tenant=acme\\n$`),
    );
    expect(listed?.err).to.match(/^--limit 1 reached; /);
    for (const { out, err } of failed) {
      expect(out).to.equal('');
      expect(err)
        .to.match(/\S/)
        .and.not.to.match(/\n\s+at /);
    }
  });

  it('token prints one token that works, and nothing else', async () => {
    const { code, out, err } = await typed('token', '--tenant', 'acme', '--user', 'alice', '--ttl', '30m');
    expect(code, err).to.equal(0);
    expect(out).to.match(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    const { organization, iat = 0, exp = 0 } = decodeJwt(out.trim());
    expect(organization).to.deep.equal(['acme']);
    expect(exp - iat).to.equal(1800);
    const authorization = `Bearer ${out.trim()}`;
    expect(
      (await fetch(`${stack.http()}${CLUSTERS}/${ready}`, { headers: { authorization } })).status,
    ).to.equal(200);
    await fails(2, /--tenant or --admin is needed/, 'token', '--user', 'alice');
    await fails(
      2,
      /"soon" is not a time such as 30m or 8h/,
      'token',
      '--admin',
      '--user',
      'root',
      '--ttl',
      'soon',
    );
    await fails(2, /required option '--user <name>'/, 'token', '--tenant', 'acme');
  });

  it('events lists the log, by stream, type and tenant, as lines or JSON', async () => {
    const lines = (await succeeds('events', '--stream', `cluster-${ready}`)).trimEnd().split('\n');
    expect(lines[0]).to.match(new RegExp(`^\\S+  \\S+  cluster-${ready}@0  ClusterOrdered  tenant=acme$`));
    const json = (
      await succeeds('events', '--type', 'ClusterOrdered', '--tenant', 'acme', '--json')
    ).trimEnd();
    const events = json.split('\n').map((line) => JSON.parse(line) as { stream: string; position: string });
    expect(events.map(({ stream }) => stream)).to.deep.equal([`cluster-${ready}`, `cluster-${waiting}`]);
    const from = events[0]?.position ?? '';
    const later = await succeeds('events', '--type', 'ClusterOrdered', '--from', from, '--json');
    expect(later.trimEnd().split('\n')).to.have.length(1);
    expect((await succeeds('events', '--limit', '3')).trimEnd().split('\n')).to.have.length(3);
    const none = await ledgerctl('events', '--tenant', 'nobody');
    expect(none).to.deep.equal({ code: 0, out: '', err: 'no events of this kind\n' });
    await fails(2, /limit/, 'events', '--limit', 'many');
  });

  it('events --follow shows what comes, with --from what was since then too, until it is interrupted', async () => {
    const follow = ['events', '--follow', '--type', 'ClusterOrdered', '--json'];
    const [first = ''] = (await succeeds('events', '--type', 'ClusterOrdered', '--json')).split('\n');
    const { position } = JSON.parse(first) as { position: string };
    const since = startMain([...follow, '--from', position], settings());
    const following = startMain(follow, settings());
    await until('one has caught up', () => since.out().includes(`cluster-${waiting}`));
    await until('the other has begun', () => following.err().includes('new events after '));
    const next = await order('followed', { 'fulfillment-ledger/zone': 'nowhere' });
    await until('both have seen the next order', () =>
      [since, following].every(({ out }) => out().includes(`cluster-${next}`)),
    );
    expect(following.out(), 'nothing old').not.to.include(`cluster-${waiting}`);
    since.child.kill('SIGINT');
    expect((await since.ended).err).to.equal('');
    following.child.kill('SIGINT');
    const { code, err } = await following.ended;
    expect(code).to.be.oneOf(['SIGINT', 130]);
    expect(err).to.match(/^new events after \S+; end with Ctrl-C\n$/);
    // The service has noticed that nobody listens any more, and still answers.
    expect((await fetch(`${stack.http()}/readyz`)).status).to.equal(200);
  });

  it('orders list, show, retry and cancel', async () => {
    const table = await succeeds('orders', 'list');
    expect(table.split('\n')[0]).to.match(/^KIND +ID +NAME +TENANT +STATE +AGE +HUB +MESSAGE$/);
    expect(table).to.match(new RegExp(`^cluster +${ready} +seen +acme +ready +\\d+[smhd] +sim-`, 'm'));
    expect(table).to.match(
      new RegExp(`^cluster +${waiting} +waiting +acme +progressing +\\d+[smhd] +- +\\S`, 'm'),
    );
    const readyOnes = JSON.parse(await succeeds('orders', 'list', '--state', 'ready', '--json')) as {
      id: string;
    }[];
    expect(readyOnes.map(({ id }) => id)).to.deep.equal([ready]);

    const shown = await succeeds('orders', 'show', ready);
    for (const name of ['ClusterAvailable', 'NodesReady', 'InfrastructureReady', 'TemplateApplied'])
      expect(shown).to.match(new RegExp(`^${name} +True`, 'm'));
    const waits = await succeeds('orders', 'show', waiting);
    expect(waits).to.match(
      /^Waits for a hub: waiting for \d+ × \S+ in zone nowhere: the provider takes no orders for it at the moment$/m,
    );
    expect(waits).to.match(/^sim-east-1 +no +zone is east, wanted nowhere$/m);
    expect(waits).to.match(/^timer +placement-retry .*due /m);
    expect(shown)
      .to.match(/^TIME +EVENT +WHAT$/m)
      .and.to.match(/ClusterBecameReady/);
    const details = JSON.parse(await succeeds('orders', 'show', ready, '--json')) as { timeline: unknown[] };
    expect(details.timeline.length).to.be.greaterThan(5);

    const failed = await order('refused', { simulation: 'factor=0.05,422=1' });
    await untilCluster(alice, failed, (c) => c.status?.state === 'CLUSTER_STATE_FAILED');
    // The timeline is a view of its own, which may be behind the state.
    let told = '';
    await until('the timeline has it too', async () =>
      (told = await succeeds('orders', 'show', failed)).includes('ClusterFailed'),
    );
    expect(told).to.match(/^Failed: ValidationFailed: .+ \(it waits for a retry or a deletion\)$/m);
    expect(told).to.match(/^Last step: .* was refused: .*422.* \(attempt 1\)$/m);
    expect(await succeeds('orders', 'retry', failed)).to.equal(`order ${failed}: retry requested\n`);
    await untilCluster(alice, failed, isReady);
    expect(await succeeds('orders', 'cancel', 'waiting')).to.equal(
      'order waiting: cancelled, its object is removed\n',
    );
    expect((await refusal(alice.get(`${CLUSTERS}/${waiting}`))).status).to.equal(404);

    await fails(1, /./, 'orders', 'cancel', ready);
    for (const verb of ['show', 'retry', 'cancel'])
      await fails(3, /not found/, 'orders', verb, 'no-such-order');
  });

  it('lanes list, pause and resume', async () => {
    expect(await succeeds('lanes', 'pause', 'hub:sim-west-1')).to.equal('lane hub:sim-west-1: paused\n');
    expect(await succeeds('lanes', 'list')).to.match(/^hub:sim-west-1 +paused +0 +0 /m);
    expect(await succeeds('lanes', 'resume', 'hub:sim-west-1')).to.equal('lane hub:sim-west-1: working\n');
    await fails(3, /lane 'nonsense' not found/, 'lanes', 'pause', 'nonsense');
    await fails(3, /did you mean hub:sim-west-1/, 'lanes', 'pause', 'hub:sim-wset-1');
  });

  it('projections list, status, digest and rebuild', async () => {
    const table = await succeeds('projections', 'list');
    expect(table).to.match(/^NAME +VERSION +STATE +POSITION +LAG +PARKED$/m);
    for (const view of ['resources', 'timeline']) {
      expect(table).to.match(new RegExp(`^${view} +\\d+ +live +\\S+ +caught up +0$`, 'm'));
      expect(JSON.parse(await succeeds('projections', 'status', view))).to.include({
        name: view,
        state: 'live',
      });
      // A timer of an order may fire meanwhile. The rebuild itself is an event, which no row is of.
      await until('a rebuild during which the log rests', async () => {
        const before = await succeeds('projections', 'digest', view);
        expect(before).to.match(/^[0-9a-f]{64} {2}\d+ rows at \S+\n$/);
        const { code, out, err } = await ledgerctl('projections', 'rebuild', view);
        expect(code, err).to.equal(0);
        expect(out).to.match(new RegExp(`^${view}: switched after \\d+ events in \\S+ s\\n$`));
        expect(err).to.match(/^\d+ events applied$/m);
        const after = await succeeds('projections', 'digest', view);
        return after.split(' at ')[0] === before.split(' at ')[0];
      });
    }
    for (const verb of ['status', 'digest', 'rebuild'])
      await fails(3, /projection 'nope' not found/, 'projections', verb, 'nope');
  });

  it('store backup copies the running store to a file that store check finds sound', async () => {
    const copy = join(stack.dataDir, '../copy');
    mkdirSync(copy);
    const target = logFile(copy);
    expect(await succeeds('store', 'backup', target)).to.match(new RegExp(`^${target}: \\d+ bytes\\n$`));
    expect(await succeeds('store', 'check', '--data-dir', copy)).to.match(/^\d+ events, nothing wrong\n$/);
    expect(await succeeds('store', 'check')).to.match(/^\d+ events, nothing wrong\n$/);
    const named = join(dirname(copy), 'named.sqlite');
    copyFileSync(target, named);
    expect(await succeeds('store', 'check', '--file', named)).to.match(/^\d+ events, nothing wrong\n$/);
    await fails(2, /exclude each other/, 'store', 'check', '--file', named, '--data-dir', copy);
    const remote = { LEDGER_EVENT_STORE: 'esdb://127.0.0.1:9?tls=false' };
    const other = await runMain(['store', 'check'], remote);
    expect(other.err).to.match(/LEDGER_EVENT_STORE names an EventStoreDB, which has its own tools/);
    expect(other.code).to.equal(2);
    expect((await runMain(['store', 'check', '--file', named], remote)).code).to.equal(0);
    await fails(1, /exists: a backup never replaces a file/, 'store', 'backup', target);
    await fails(1, /the backup was not made/, 'store', 'backup', join(copy, 'nowhere', 'events.db'));
    await fails(2, /absolute path/, 'store', 'backup', 'copy.db');
    const nothing = await ledgerctl('store', 'check', '--data-dir', dirname(copy));
    expect(nothing.out).to.match(/ \S+ not found\n0 events, 1 finding\n$/);
    expect(nothing.code).to.equal(1);
  });

  // The help of every command is read in test/unit/cli/help.test.ts.
  it('--help says what there is, and a wrong command or option is usage', async () => {
    for (const command of [[], ['orders', 'show']])
      expect(await succeeds(...command, '--help')).to.match(
        new RegExp(`^Usage: ledgerctl ${command.join(' ')}`.trimEnd()),
      );
    await fails(2, /unknown command 'nonsense'/, 'nonsense');
    await fails(2, /unknown option '--nonsense'/, 'events', '--nonsense');
    await fails(2, /missing required argument 'order'/, 'orders', 'show');
    expect((await ledgerctl()).code, 'no command at all').to.equal(2);
    expect((await ledgerctl('orders')).code, 'half a command').to.equal(2);
  });

  it('says when no service is there, and when the token is not accepted', async () => {
    const nowhere = ['--url', 'http://127.0.0.1:9'];
    for (const command of [['orders', 'list'], ['projections', 'list'], ['events']])
      await fails(
        4,
        /^ledgerctl: cannot reach http:\/\/127\.0\.0\.1:9: is the service running there\?\n$/,
        ...nowhere,
        ...command,
      );
    await fails(
      1,
      /answered 401: .+ \(request \S+\)\nhint: give a valid token: .+\n$/,
      '--token',
      'a.b.c',
      'orders',
      'list',
    );
    const other = await openDevelopmentIssuer(join(dirname(stack.dataDir), 'other-secrets'));
    const foreign = await other.mintToken({ user: 'x', admin: true, ttlSeconds: 60, now: Date.now() });
    await fails(
      1,
      /answered 401: .+\nhint: its key is not the one of this service: set LEDGER_DATA_DIR \(or LEDGER_SECRETS_DIR\)/,
      '--token',
      foreign,
      'orders',
      'list',
    );
    const tenant = await stack.token({ tenant: 'acme', user: 'alice' });
    await fails(
      1,
      /answered 403: only provider admins may use this surface/,
      '--token',
      tenant,
      'orders',
      'list',
    );
  });

  it('orders that their hub denies everything are named, and close it to nobody', async () => {
    const zone = { 'fulfillment-ledger/zone': 'east' };
    const denied = await Promise.all(
      ['denied-1', 'denied-2'].map((name) => order(name, { ...zone, simulation: 'forbidden=all' })),
    );
    const wells: string[] = [];
    const tries = async () =>
      /^hub:sim-east-1 +\S+ +(\d+) +\S.* +Forbidden +\S/m.exec(await succeeds('lanes', 'list'))?.[1] ?? '0';
    await until('four tries of one were denied', async () => Number(await tries()) >= 4);
    for (const name of ['well-1', 'well-2', 'well-3'])
      wells.push(await order(name, { ...zone, simulation: 'factor=0.05' }));
    for (const id of wells) await untilCluster(alice, id, isReady);
    const listed = await succeeds('lanes', 'list');
    for (const id of denied)
      expect(listed).to.match(new RegExp(`^hub:sim-east-1 +${id} +\\d+ +.*Forbidden`, 'm'));
    expect(listed).to.match(/^hub:sim-east-1 +working/m);
    expect(await succeeds('hubs', 'list')).to.match(/^sim-east-1 .* open /m);
  });
});
