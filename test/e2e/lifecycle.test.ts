import { readdirSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { createApiClient, type ApiClient } from '../../src/cli/api-client.ts';
import { callerOf } from '../support/service/caller.ts';
import { readLog } from '../support/service/stored-log.ts';
import {
  AS_DEPLOYED,
  CLUSTERS,
  E2E_STORE,
  PRIVATE,
  createStack,
  isReady,
  until,
  untilCluster,
  untilReady,
  type ClusterBody,
  type Stack,
} from '../support/service/stack.ts';

const order = (name: string, more: object = {}): object => ({
  metadata: { name, annotations: { simulation: 'factor=0.05' } },
  spec: { template: { id: 'osac.templates.ocp_ci_small' }, ...more },
});

/** One life after the other, on one data directory: a start costs more than all that is asked of it. */
describe('the service from its start to its end', function () {
  this.timeout(180_000);
  let stack: Stack;
  let id: string;
  let kept: Record<string, unknown>;
  let events: number;
  const canaries: Record<string, string> = {
    'pull secret': 'canary-pull-secret-4711',
    kubeconfig: 'canary-hub-kubeconfig-4712',
  };

  before(async () => {
    stack = await createStack(E2E_STORE);
    await stack.start({ ...AS_DEPLOYED, LEDGER_LOG_LEVEL: 'trace' });
  });
  after(() => stack.dispose());

  const seen = async (client: ApiClient): Promise<Record<string, unknown>> => {
    const paths = ['tenants', 'host_types', 'cluster_versions', 'cluster_templates', 'hubs', 'clusters'];
    const lists = paths.map(async (path) => [path, await client.get(`${PRIVATE}/${path}?limit=1000`)]);
    return Object.fromEntries(await Promise.all(lists)) as Record<string, unknown>;
  };

  it('exposes every metric that alerts and dashboards ask for', async () => {
    const { metrics } = stack.service();
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    const { id } = await alice.send<ClusterBody>('POST', CLUSTERS, order('measured'));
    await untilCluster(alice, id, isReady);
    const text = await (await fetch(`${metrics}/metrics`)).text();
    const exposed = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
    const wanted = new Set(
      filesBelow(join(import.meta.dirname, '../../ops'))
        .filter((file) => /\/(alerts|dashboards)\//.test(file))
        .flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/\bledger_[a-z_]+[a-z]\b/g)])
        .map(([name]) => name.replace(/_(bucket|count|sum)$/, '')),
    );
    expect(wanted.size).to.be.greaterThan(10);
    expect([...wanted].filter((name) => !exposed.has(name))).to.deep.equal([]);
    for (const sample of [
      /^ledger_commands_total\{type="OrderCluster",outcome="accepted"\} 1$/m,
      /^ledger_store_up 1$/m,
      /^ledger_projection_caught_up\{view="resources"\} 1$/m,
      /^ledger_http_request_seconds_count\{method="POST",route="\/api\/fulfillment\/v1\/clusters",status="200"\} 1$/m,
      /^ledger_effects_total\{port="management-cluster",operation="[A-Za-z-]+",outcome="done"\} \d+$/m,
    ])
      expect(text).to.match(sample);
    expect(text, 'labels are bounded').not.to.include(id);
  });

  it('writes files that are for its own user only', async () => {
    const admin = await stack.client({ admin: true, user: 'root' });
    await untilReady(stack.service());
    const target = join(stack.dataDir, '..', 'copy.db');
    // A copy of the log is the embedded store's alone.
    if (E2E_STORE === 'sqlite') await admin.send('POST', '/api/ledger/v1/store/backup', { file: target });
    const open = [
      ...readdirSync(stack.dataDir, { recursive: true, encoding: 'utf8' }).map((name) =>
        join(stack.dataDir, name),
      ),
      stack.dataDir,
      target,
      // SQLite's journals come and go meanwhile.
    ].filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0);
    expect(open).to.deep.equal([]);
  });

  it('repeats no secret that it was told', async () => {
    const admin = await stack.client({ admin: true, user: 'root' });
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    canaries['token'] = await stack.token({ tenant: 'acme', user: 'alice', ttlSeconds: 1234 });
    await createApiClient(stack.http(), canaries['token']).get(CLUSTERS);

    const kubeconfig = Buffer.from(canaries['kubeconfig'] ?? '').toString('base64');
    await admin.send('POST', `${PRIVATE}/hubs`, {
      id: 'hub-1',
      metadata: { name: 'hub-1' },
      spec: { namespace: 'osac', kubeconfig },
    });
    type Tenant = { status: { break_glass_credentials: { password: string } } };
    const initech = await admin.send<Tenant>('POST', `${PRIVATE}/tenants`, { metadata: { name: 'initech' } });
    canaries['break-glass password'] = initech.status.break_glass_credentials.password;
    const pullSecret = { auths: { registry: { auth: canaries['pull secret'] } } };
    const { id } = await alice.send<ClusterBody>(
      'POST',
      CLUSTERS,
      order('secretive', { pull_secret: JSON.stringify(pullSecret) }),
    );
    await untilCluster(alice, id, isReady);
    canaries['cluster password'] = (await alice.text(`${CLUSTERS}/${id}/password`)).trim();
    canaries['cluster kubeconfig'] = (await alice.text(`${CLUSTERS}/${id}/kubeconfig`)).trim();
    // Wrong uses as well: what is refused must not be repeated in a log either.
    const call = await callerOf(stack, { tenant: 'acme', user: 'alice' });
    await call('POST', CLUSTERS, {
      body: { ...order('Bad_Name', { pull_secret: canaries['pull secret'] }) },
    });
    await call('PATCH', `${CLUSTERS}/${id}`, {
      body: { spec: { pull_secret: canaries['pull secret'], nope: 1 } },
    });
    expect(JSON.stringify(await alice.get(`${CLUSTERS}/${id}`))).not.to.include(canaries['pull secret']);
  });

  it('ends in order: not ready, nothing new is accepted, what runs is finished, exit status 0', async () => {
    const { hostname, port } = new URL(stack.http());
    const token = await stack.token({ tenant: 'acme', user: 'alice' });
    const body = JSON.stringify(order('in-flight'));
    let answers = '';
    const socket = connect(Number(port), hostname);
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.setEncoding('utf8').on('data', (part: string) => (answers += part));
    socket.write(
      `POST ${CLUSTERS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nExpect: 100-continue\r\n` +
        `Content-Length: ${body.length}\r\n\r\n`,
    );
    await until('the request is being read', () => answers.includes('100 Continue'));

    const ended = stack.stop('SIGTERM');
    await until('nothing new is accepted', () =>
      fetch(`${stack.http()}/healthz`).then(
        () => false,
        () => true,
      ),
    );
    // On the connection that is still open it says that it should get no more.
    socket.write(`${body}GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n`);
    await closed;
    expect(answers).to.match(/HTTP\/1\.1 200 OK[^]*"name":"in-flight"/);
    expect(answers).to.match(/HTTP\/1\.1 503 [^]*"phase","ok":false,"message":"draining"/);
    expect(await ended).to.equal(0);
    const messages = stack.service().log.map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(messages.indexOf('stopping')).to.be.within(1, messages.indexOf('stopped') - 1);
    expect(messages.at(-1)).to.equal('stopped');
  });

  it('lets no secret out: neither into a log line nor into any file but those that are there for it', () => {
    const log = stack.service().log.join('\n');
    // A simulated hub is a system of its own: it makes the credentials of its clusters.
    const isOfHub = (file: string): boolean => file.includes('/hubs/');
    const files = filesBelow(stack.dataDir).filter((file) => !file.includes('/secrets/'));
    expect(files.filter(isOfHub)).to.not.deep.equal([]);
    expect(files.join()).to.include('read-models').and.to.include('processes');
    if (E2E_STORE === 'sqlite') expect(files.join()).to.include('events.db');
    const texts = new Map(files.map((file) => [file, readFileSync(file, 'latin1')]));
    expect([...texts.values()].join(), 'files are searched in the form they have').to.include('secretive');
    for (const [what, secret] of Object.entries(canaries)) {
      expect(secret.length, what).to.be.greaterThan(10);
      for (const form of [
        secret,
        Buffer.from(secret).toString('base64').slice(0, -4),
        JSON.stringify(secret).slice(1, -1),
      ]) {
        expect(log.includes(form), `${what} in the log`).to.equal(false);
        for (const [file, text] of texts)
          if (!isOfHub(file) || !what.startsWith('cluster '))
            expect(text.includes(form), `${what} in ${file}`).to.equal(false);
      }
    }
  });

  it('has what was in flight at its next start; cuts what does not end by itself after its bound, and still ends cleanly', async () => {
    await stack.start({ LEDGER_SHUTDOWN_MS: '200' });
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    const { items } = await alice.get<{ items: ClusterBody[] }>(CLUSTERS);
    expect(items.map(({ metadata }) => metadata.name)).to.include('in-flight');
    // Nothing answers there: what is found out about it would come between what is compared below.
    const admin = await stack.client({ admin: true, user: 'root' });
    await admin.send('DELETE', `${PRIVATE}/hubs/hub-1`);

    const { hostname, port } = new URL(stack.http());
    let answers = '';
    const socket = connect(Number(port), hostname).on('error', () => undefined);
    socket.setEncoding('utf8').on('data', (part: string) => (answers += part));
    const cut = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const head = 'Host: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n';
    socket.write(`POST ${CLUSTERS} HTTP/1.1\r\n${head}`);
    await until('the request is being read', () => answers.includes('100 Continue'));
    const ended = stack.stop('SIGTERM');
    await cut;
    expect(await ended).to.equal(0);
  });

  it('names its addresses in exactly one line, whatever the level', async () => {
    const { http, metrics } = await stack.start({ LEDGER_LOG_LEVEL: 'error' });
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    ({ id } = await alice.send<ClusterBody>('POST', CLUSTERS, order('kept')));
    await untilCluster(alice, id, isReady);
    const admin = await stack.client({ admin: true, user: 'root' });
    await admin.send('PATCH', `${PRIVATE}/host_types/fc430`, { title: 'Renamed by an admin' });
    await admin.send('PATCH', `${PRIVATE}/hubs/sim-west-1`, { spec: { capacity: { control_planes: 3 } } });
    await admin.send('DELETE', `${PRIVATE}/tenants/globex`);
    await admin.send('POST', `/api/ledger/v1/lanes/hub:sim-west-1/pause`, { reason: 'upgrade' });
    kept = await seen(admin);
    expect(JSON.stringify(kept)).to.include('Renamed by an admin');
    events = (await readLog(stack)).filter(({ stream }) => !stream.startsWith('sys-')).length;

    expect(await stack.stop('SIGTERM')).to.equal(0);
    const quiet = stack.service().log.map((line) => JSON.parse(line) as { msg: string });
    expect(quiet.map(({ msg }) => msg)).to.deep.equal(['listening']);
    expect(quiet[0]).to.include({ http, metrics });
  });

  it('keeps everything over a restart; loading the catalogue again changes nothing, an admin’s change least', async () => {
    await stack.start({ LEDGER_DRAIN_MS: '1000', LEDGER_SHUTDOWN_MS: '40000' });
    // A tenant that was removed stays away too: its name belongs to what was there.
    expect(await seen(await stack.client({ admin: true, user: 'root' }))).to.deep.equal(kept);
    const since = (await readLog(stack)).filter(({ stream }) => !stream.startsWith('sys-')).slice(events);
    expect(since.map(({ type }) => type).filter((type) => !type.startsWith('Name'))).to.deep.equal([]);
  });

  it('keeps a paused lane paused, and says why and since when', async () => {
    const admin = await stack.client({ admin: true, user: 'root' });
    type Lanes = { items: { lane: string; paused: boolean; pause?: { reason: string } }[] };
    const paused = async () =>
      (await admin.get<Lanes>(`/api/ledger/v1/lanes`)).items.find(({ lane }) => lane === 'hub:sim-west-1');
    await until('the processes run here', async () => (await paused()) !== undefined);
    expect(await paused()).to.deep.include({ paused: true });
    expect((await paused())?.pause).to.include({ reason: 'upgrade' });
    await admin.send('POST', `/api/ledger/v1/lanes/hub:sim-west-1/resume`);
    expect(await paused(), 'idle lanes are not kept').to.equal(undefined);
  });

  it('says for a while that it goes, still serving, and ends at once who follows the log', async () => {
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    await alice.get(`${CLUSTERS}/${id}`);
    const token = await stack.token({ admin: true, user: 'root' });
    const headers = { authorization: `Bearer ${token}` };
    const following = await fetch(`${stack.http()}/api/ledger/v1/events?follow=true`, { headers });
    const told = following.text();
    const started = performance.now();
    const ended = stack.stop('SIGTERM');
    await until('it says that it goes', async () => (await fetch(`${stack.http()}/readyz`)).status === 503);
    expect((await fetch(`${stack.http()}${CLUSTERS}`, { headers })).status).to.equal(200);
    for (const line of (await told).trim().split('\n'))
      expect(JSON.parse(line)).not.to.have.property('error');
    await ended;
    expect(performance.now() - started, 'of a grace of 40 s').to.be.within(1_000, 38_000);
  });

  it('every line of its log is one JSON object', async () => {
    type Line = {
      msg: string;
      level: number;
      time: number;
      route?: string;
      correlationId?: string;
      tenant?: string;
    };
    const lines = stack.service().log.map((line) => JSON.parse(line) as Line);
    expect(lines.filter(({ msg }) => msg === 'listening')).to.have.length(1);
    for (const line of lines) expect(line).to.include.keys('msg', 'level', 'time');
    const request = lines.find(({ msg, route }) => msg === 'request' && route === `${CLUSTERS}/{id}`);
    expect(request).to.include({ tenant: 'acme' }).and.to.include.keys('correlationId');
  });
});

const filesBelow = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
