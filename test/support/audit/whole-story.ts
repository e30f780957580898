import { expect } from 'chai';
import { AUDIT, until } from './stage.ts';
import { itemsOf, PRIVATE, PUBLIC, textAt, type Caller, type Json, type Reply } from '../http/service.ts';
import { KIND_SAMPLES, makeHousePool } from '../http/kind-samples.ts';
import type { WholeService } from '../service/whole-service.ts';
import { eventually } from '../eventually.ts';

export const TICKET = 'CHG-4711';
export const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const ASKED = { 'x-ledger-ticket': TICKET, traceparent: TRACEPARENT, 'user-agent': 'story/1.0' };
const SMALL = { template: { id: 'osac.templates.ocp_ci_small' } };
const QUICK = { annotations: { simulation: 'factor=0.02' } };

/** Everybody who calls in the story. */
export type Cast = {
  readonly root: Caller;
  readonly alice: Caller;
  /** Acts on behalf of alice. */
  readonly portal: Caller;
  readonly auditor: Caller;
  /** A Kubernetes service account of the tenant. */
  readonly robot: Caller;
  /** Of a tenant that is not there. */
  readonly lost: Caller;
  readonly stranger: Caller;
};

export const castOf = async (whole: WholeService): Promise<Cast> => {
  const of = (claims: object): Promise<Caller> => whole.caller(claims, ASKED);
  const alice = {
    sub: 'alice',
    preferred_username: 'alice',
    email: 'alice@acme.example',
    organization: ['acme'],
  };
  return {
    root: await of({ sub: 'root', preferred_username: 'root', groups: ['admins'] }),
    alice: await of(alice),
    portal: await of({ ...alice, act: { sub: 'portal', preferred_username: 'csp-portal' } }),
    auditor: await of({
      sub: 'audrey',
      preferred_username: 'audrey',
      organization: ['acme'],
      realm_access: { roles: ['auditor'] },
    }),
    robot: await of({ sub: 'system:serviceaccount:acme:robot', 'kubernetes.io': { namespace: 'acme' } }),
    lost: await of({ sub: 'lost', preferred_username: 'lost', organization: ['nowhere'] }),
    stranger: whole.stranger(ASKED),
  };
};

const ok = async (call: Promise<Reply>): Promise<Json> => {
  const reply = await call;
  expect(reply.status, reply.text).to.be.within(200, 299);
  return reply.json['object'] ?? reply.json;
};
const refused = async (status: number, call: Promise<Reply>): Promise<void> => {
  const reply = await call;
  expect(reply.status, reply.text).to.equal(status);
};

/** Looks four times a second at most in the end: each look is work, or an event. */
const unhurriedly = (what: string, holds: () => Promise<boolean>): Promise<void> =>
  eventually(what, holds, 30_000, 250);

/** Orders that are served, changed, wait for room, and go. */
export const tellOfClusters = async (
  { root, alice, portal, robot }: Cast,
  whole: Pick<WholeService, 'log'>,
): Promise<void> => {
  const path = `${PUBLIC}/clusters`;
  const ready = (id: string): Promise<void> =>
    until(async () => {
      const { status } = await ok(alice('GET', `${path}/${id}`));
      return JSON.stringify(status ?? {}).includes('"state":"CLUSTER_STATE_READY"');
    });
  const order = async (caller: Caller, name: string, more: object = {}): Promise<string> =>
    textAt(
      await ok(caller('POST', path, { metadata: { name, ...QUICK }, spec: { ...SMALL, ...more } })),
      'id',
    );
  const one = await order(alice, 'one', { pull_secret: '{"auths":{}}' });
  const two = await order(portal, 'two');
  const robots = await order(robot, 'robots');
  await Promise.all([one, two, robots].map(ready));
  const [nodeSet = ''] = Object.keys((await ok(alice('GET', `${path}/${one}`)))['spec']?.['node_sets'] ?? {});
  await ok(alice('PATCH', `${path}/${one}`, { metadata: { labels: { tier: 'gold' }, description: 'mine' } }));
  await ok(alice('PATCH', `${path}/${one}`, { spec: { node_sets: { [nodeSet]: { size: 3 } } } }));
  await ready(one);
  await ok(root('PATCH', `${PRIVATE}/clusters/${one}`, { metadata: { finalizers: ['story'] } }));
  await ok(root('PATCH', `${PRIVATE}/clusters/${one}`, { metadata: { finalizers: [] } }));
  expect((await alice('GET', `${path}/${one}/kubeconfig`)).status).to.equal(200);
  await root('POST', `/api/ledger/v1/orders/${one}/retry`, {});
  // All that a hub can hold, beside others: it waits, with a timer.
  const large = await order(alice, 'large', { node_sets: { [nodeSet]: { size: 64 } } });
  await unhurriedly('the large one waits', async () =>
    (await whole.log()).some(({ type, stream }) => type === 'PlacementDeferred' && stream.endsWith(large)),
  );
  await ok(alice('DELETE', `${path}/${large}`));
  for (const id of [one, two]) await alice('DELETE', `${path}/${id}`);
  await until(async () => (await alice('GET', `${path}/${two}`)).status === 404);
};

/** Every kind is made, changed and removed by an administrator; tenants and projects go with what is in them. */
const SMALL_HOST = 'ci-worker';
/** Samples name the catalogue of other suites. */
const asTold = (body: object): object => {
  const text = JSON.stringify(body).replaceAll('osac.templates.small', SMALL.template.id);
  return JSON.parse(text.replaceAll('fc430', 'story-host')) as object;
};

export const tellOfKinds = async ({ root }: Cast, kinds: readonly Kind[]): Promise<void> => {
  await ok(root('POST', `${PRIVATE}/tenants`, { metadata: { name: 't1' } }));
  await ok(root('POST', `${PRIVATE}/host_types`, { id: 'story-host', title: 'S' }));
  const at = { tenant: 't1' };
  await ok(root('POST', `${PRIVATE}/projects`, { metadata: { name: 'house', ...at } }));
  await ok(root('POST', `${PRIVATE}/roles`, { metadata: { name: 'house-role' } }));
  // One hub has all of it: addresses serve what is on their own hub alone.
  const capacity = { control_planes: 50, nodes: { [SMALL_HOST]: 50 } };
  await ok(root('PATCH', `${PRIVATE}/hubs/sim-west-1`, { spec: { capacity } }));
  await makeHousePool((verb, path, body) => root(verb, path, asTold(body)), {
    simulation: 'factor=0.05',
    'fulfillment-ledger/zone': 'west',
  });
  // The state that was written is shown until the pool is placed; from then on its hub has the last word.
  const pool = `${PRIVATE}/external_ip_pools/house-pool`;
  await until(async () => {
    const status = (await ok(root('GET', pool)))['status'];
    return /"state":"EXTERNAL_IP_POOL_STATE_READY".*"hub"|"hub".*_STATE_READY"/.test(JSON.stringify(status));
  });
  const users: string[] = [];
  for (const name of ['u-1', 'u-2', 'u-3', 'u-4'])
    users.push(
      textAt(
        await ok(root('POST', `${PRIVATE}/users`, { metadata: { name, ...at }, spec: { username: name } })),
        'id',
      ),
    );
  const around = { user: () => users.pop() ?? '' };
  for (const [n, { kind, collection }] of kinds.entries()) {
    const body = asTold(KIND_SAMPLES[kind]?.body(`story-${n}`, around) ?? {});
    const reply = await root('POST', `${PRIVATE}/${collection}`, body);
    const made = await ok(Promise.resolve(reply));
    const path = `${PRIVATE}/${collection}/${encodeURIComponent(textAt(made, 'id'))}`;
    await ok(root('PATCH', path, { metadata: { labels: { told: 'yes' } } }));
    const settled = KIND_SAMPLES[kind]?.settled;
    if (settled !== undefined) await ok(root('PATCH', path, settled));
    // The state that was written is shown until the hub has spoken.
    if (kind === 'externalIp')
      await until(async () => {
        const status = JSON.stringify((await ok(root('GET', path)))['status']);
        return status.includes('_STATE_ALLOCATED') && status.includes('"address"');
      });
    await ok(root('DELETE', path));
  }
  await ok(root('POST', `${PRIVATE}/tenants`, { metadata: { name: 'brief' } }));
  await ok(
    root('POST', `${PRIVATE}/users`, {
      metadata: { name: 'u-9', tenant: 'brief' },
      spec: { username: 'u-9' },
    }),
  );
  await root('DELETE', `${PRIVATE}/tenants/brief`);
};

/** Hubs are looked at when somebody asks. */
export const tellOfHubs = async ({ root, alice }: Cast): Promise<void> => {
  await ok(root('POST', '/api/ledger/v1/hubs/sim-east-1/check', {}));
  const hub = { id: 'sim-brief', spec: { namespace: 'osac', capacity: { control_planes: 1, nodes: {} } } };
  await ok(root('POST', `${PRIVATE}/hubs`, hub));
  await ok(root('DELETE', `${PRIVATE}/hubs/sim-brief`));
  expect((await alice('POST', '/api/ledger/v1/hubs/sim-east-1/check', {})).status).to.equal(403);
};

type Kind = { readonly kind: string; readonly collection: string };

/** Calls that are refused: by a rule, for lack of rights, of nobody known, and more than are recorded one by one. */
export const tellOfRefusals = async ({ root, alice, portal, lost, stranger }: Cast): Promise<void> => {
  for (const caller of [alice, portal]) {
    await refused(400, caller('POST', `${PUBLIC}/clusters`, { metadata: { name: 'x' }, spec: {} }));
    await refused(404, caller('DELETE', `${PUBLIC}/clusters/nothing`));
    await refused(403, caller('POST', `${PRIVATE}/tenants`, { metadata: { name: 'x' } }));
  }
  await refused(409, root('POST', `${PRIVATE}/tenants`, { metadata: { name: 'acme' } }));
  await refused(400, root('POST', `${PUBLIC}/clusters`, 'no json'));
  await refused(400, lost('POST', `${PUBLIC}/clusters`, { metadata: { name: 'x' } }));
  await refused(401, stranger('GET', `${PUBLIC}/clusters`));
  for (let i = 0; i < 70; i += 1) await refused(404, alice('DELETE', `${PUBLIC}/clusters/nothing-${i}`));
};

/** What auditors and those who administer do with the history. */
export const tellOfAudits = async ({ root, alice, auditor, portal }: Cast): Promise<void> => {
  await ok(alice('POST', `${PUBLIC}/clusters`, { metadata: { name: 'last', ...QUICK }, spec: SMALL }));
  const looked = await ok(auditor('GET', `${AUDIT}/events?type=ClusterOrdered`));
  const subject = textAt(itemsOf({ json: looked } as unknown as Reply).at(-1), 'actor', 'subject');
  await ok(root('GET', `${AUDIT}/events?tenant=acme&limit=3`));
  const grant = { subject, tenants: ['acme'], reason: 'yearly audit' };
  const granted = textAt(await ok(root('POST', `${AUDIT}/grants`, grant)), 'id');
  await ok(root('DELETE', `${AUDIT}/grants/${granted}?reason=over`));
  const hold = { scope: { kind: 'tenant', id: 'acme' }, reason: 'case 1' };
  const held = textAt(await ok(root('POST', `${AUDIT}/holds`, hold)), 'id');
  const erasure = { subject_id: subject, tenant: 'acme', reason: 'asked for it' };
  await refused(400, root('POST', `${AUDIT}/erasures`, erasure));
  await ok(root('DELETE', `${AUDIT}/holds/${held}?reason=over`));
  const exported = textAt(await ok(auditor('POST', `${AUDIT}/exports`, {})), 'id');
  const stateOf = async (): Promise<string> =>
    textAt(await ok(auditor('GET', `${AUDIT}/exports/${exported}`)), 'state');
  await unhurriedly('the export is complete', async () => (await stateOf()) === 'complete');
  expect((await auditor('GET', `${AUDIT}/exports/${exported}/file`)).status).to.equal(200);
  await ok(root('POST', `${AUDIT}/erasures`, erasure));
  await ok(portal('POST', `${PUBLIC}/clusters`, { metadata: { name: 'after', ...QUICK }, spec: SMALL }));
};
