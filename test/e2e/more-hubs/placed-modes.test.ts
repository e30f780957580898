import { expect } from 'chai';
import { templateOf, type OwnedObject } from '../../../src/domain/hubs/hub-object.ts';
import { SECURITY_GROUP } from '../../../src/domain/networks/hub-objects.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { startAap, type AapStandIn } from '../../support/aap/aap-server.ts';
import { eventually } from '../../support/eventually.ts';
import { KIND_SAMPLES, makeHousePool } from '../../support/http/kind-samples.ts';
import { itemsOf, PRIVATE, seedCatalogue, textAt, type Caller } from '../../support/http/service.ts';
import { grantHubAccess } from '../../support/hubs/kubernetes-hub.ts';
import { ok } from '../../support/hubs/network-story.ts';
import { NS, pathOf, PLACED, playOperator, readyOf, type Carry } from '../../support/hubs/placed-suite.ts';
import { kubeconfigOf } from '../../support/kube-apiserver/kubeconfig.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { startRulebook, type RulebookStandIn } from '../../support/rulebook/rulebook-server.ts';
import { createWholeService } from '../../support/service/whole-service.ts';

const TOKEN = 'token-of-the-automation';
const ZONE = 'fulfillment-ledger/zone';
const nameOf = (stored: JsonObject): string => stringAt(objectAt(stored, 'metadata'), 'name');
/** The endpoint for the other way. */
const removing = (webhook: string): string =>
  webhook.replace('create-', 'delete-').replace('attach-', 'detach-');

/** An operator that posts the object to its rulebook; what the rulebook has no rule for is never carried out. */
const byWebhooks = (rulebook: RulebookStandIn, ran: ReadonlySet<string>): Carry => {
  const posted = new Set<string>();
  return async (what, { webhook, withoutPlaybook }, stored) => {
    if (withoutPlaybook === true) return true;
    if (webhook === undefined) return false;
    const endpoint = what === 'create' ? webhook : removing(webhook);
    const key = `${endpoint}/${nameOf(stored)}`;
    if (!posted.has(key)) {
      const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
      await fetch(`${rulebook.url}/${endpoint}`, { method: 'POST', headers, body: JSON.stringify(stored) });
      posted.add(key);
    }
    return ran.has(key);
  };
};

/** An operator that launches the job template of the kind, looked up by its name. */
const byJobs = (aap: AapStandIn): Carry => {
  const launched = new Set<string>();
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  return async (what, object, stored) => {
    if (object.withoutPlaybook === true) return true;
    const name = `osac-${templateOf(object)}`.replace('create-', `${what}-`);
    const key = `${name}/${nameOf(stored)}`;
    if (!launched.has(key)) {
      const page = await fetch(`${aap.url}/v2/job_templates/?name=${name}`, { headers });
      const [template] = ((await page.json()) as { results: readonly { id: number }[] }).results;
      if (template === undefined) return false;
      const body = JSON.stringify({ extra_vars: { osac_job_vars: { resource: stored } } });
      await fetch(`${aap.url}/v2/job_templates/${template.id}/launch/`, { method: 'POST', headers, body });
      launched.add(key);
    }
    const job = aap.jobs.find(
      ({ template, variables }) =>
        template.name === name &&
        nameOf(objectAt(objectAt(variables, 'osac_job_vars'), 'resource')) === nameOf(stored),
    );
    return job?.status === 'successful';
  };
};

const hasWebhook = ({ webhook, withoutPlaybook }: OwnedObject): boolean =>
  webhook !== undefined || withoutPlaybook === true;

/** Hubs whose operators work by webhooks or by jobs: what they can carry is carried out there, and nothing else. */
describe('placed kinds on hubs in modes eda and aap', function () {
  this.timeout(240_000);
  const stops: (() => Promise<void>)[] = [];
  const servers = new Map<string, KubeApiServer>();
  const around = { user: () => '' };
  let admin: Caller;
  let rulebook: RulebookStandIn;
  let aap: AapStandIn;

  const register = async (id: string, more: object, carry?: Carry): Promise<void> => {
    const server = await startKubeApiServer();
    stops.push(() => server.close());
    const token = await grantHubAccess(server.call, NS);
    servers.set(id, server);
    stops.push(playOperator(server, undefined, undefined, carry));
    const access = { url: server.url, ca: server.ca, credentials: { token } };
    const kubeconfig = Buffer.from(kubeconfigOf(access)).toString('base64');
    const spec = { namespace: NS, kubeconfig, ...more };
    ok(await admin('POST', `${PRIVATE}/hubs`, { id, metadata: { name: id }, spec }));
    await eventually(`${id} was looked at`, async () => {
      const { json } = await admin('GET', `/api/ledger/v1/hubs/${id}`);
      return textAt(json, 'health') === 'ok';
    });
  };
  const automation = { token: TOKEN };
  const names = (what: 'create' | 'delete') => (object: OwnedObject) =>
    `osac-${templateOf(object)}`.replace('create-', `${what}-`);
  const template = (name: string) => ({ name, workflow: false, asksVariables: true });

  before(async () => {
    const ran = new Set<string>();
    const webhooks = PLACED.flatMap(({ object: { webhook } }) => webhook ?? []);
    rulebook = await startRulebook({
      token: TOKEN,
      rules: [...webhooks, ...webhooks.map(removing)],
      playbook: async ({ meta, payload }) =>
        void ran.add(`${meta.endpoint}/${nameOf(payload as JsonObject)}`),
    });
    stops.push(rulebook.close);
    const kinds = PLACED.map(({ object }) => object).filter((object) => object.withoutPlaybook !== true);
    aap = await startAap({
      token: TOKEN,
      templates: [
        ...['create', 'delete'].map((what) => ({
          ...template(`osac-${what}-hosted-cluster`),
          workflow: true,
        })),
        ...kinds
          .flatMap((object) => (['create', 'delete'] as const).map((what) => names(what)(object)))
          .filter((name) => name !== names('create')(SECURITY_GROUP))
          .map(template),
      ],
    });
    stops.push(aap.close);
    const whole = await createWholeService({ LEDGER_CATALOG: '' });
    stops.push(() => whole.dispose());
    await whole.start();
    admin = await whole.caller({ sub: 'root', preferred_username: 'root', groups: ['/admins'] });
    const eda = { mode: 'eda', endpoints: { eda: rulebook.url }, automation };
    await register('eda', eda, byWebhooks(rulebook, ran));
    await seedCatalogue(admin);
    await makeHousePool(admin);
  });
  after(async () => {
    for (const stop of stops.toReversed()) await stop();
  });

  const make = async (id: string, kind: string, collection: string, more: object = {}): Promise<void> => {
    const { metadata, spec, ...sample } = (KIND_SAMPLES[kind]?.body(id, around) ?? {}) as {
      metadata: object;
      spec: object;
    };
    const { zone, ...changed } = more as { zone?: string };
    const annotations = zone === undefined ? {} : { annotations: { [ZONE]: zone } };
    const body = { ...sample, id, metadata: { ...metadata, ...annotations }, spec: { ...spec, ...changed } };
    ok(await admin('POST', `${PRIVATE}/${collection}`, body));
  };
  const statusOf = async (collection: string, id: string): Promise<JsonObject> =>
    objectAt(ok(await admin('GET', `${PRIVATE}/${collection}/${id}`)) as JsonObject, 'status');
  const becomes = async (collection: string, id: string, kind: string, hub: string): Promise<void> => {
    let seen: JsonObject = {};
    await eventually(
      () => `${id} is as wanted on ${hub}: ${JSON.stringify(seen)}`,
      async () => {
        seen = await statusOf(collection, id);
        // Not every kind shows its hub: there its object says where it is.
        const isThere = (await onHub(hub, kind)).includes(nameOnHub(kind, id));
        return stringAt(seen, 'state').endsWith(readyOf(kind)) && isThere;
      },
    );
  };
  /** Why it waits, as the provider reads it. */
  const waits = async (id: string, why: RegExp): Promise<void> => {
    let said = '';
    await eventually(
      () => `${id} waits: ${said}`,
      async () => {
        const { json } = await admin('GET', `/api/ledger/v1/orders/${id}`);
        const waiting = objectAt(json as unknown as JsonObject, 'waiting');
        said = `${stringAt(waiting, 'message')} / ${stringAt(waiting, 'detail')}`;
        return why.test(said);
      },
    );
  };
  const objectOf = (kind: string) => PLACED.find((one) => one.kind.kind === kind)?.object;
  const nameOnHub = (kind: string, id: string): string => objectOf(kind)?.nameOf(id) ?? '';
  const onHub = async (hub: string, kind: string): Promise<readonly string[]> => {
    const object = objectOf(kind);
    return object === undefined ? [] : stored(hub, object);
  };
  const stored = async (hub: string, object: OwnedObject): Promise<readonly string[]> => {
    const { body } = (await servers.get(hub)?.call('GET', pathOf(object))) ?? { body: {} };
    return listAt(body, 'items').map((each) => nameOf(each as JsonObject));
  };

  it('eda: what the rulebook has a webhook for is carried out, and everything else waits', async () => {
    for (const { kind } of PLACED) await make(`m-${kind.kind.toLowerCase()}`, kind.kind, kind.collection);
    for (const { kind, object } of PLACED) {
      const id = `m-${kind.kind.toLowerCase()}`;
      if (hasWebhook(object)) await becomes(kind.collection, id, kind.kind, 'eda');
      else await waits(id, new RegExp(`WebhookMissing: (mode eda has no webhook for )?${object.kind}`));
    }
    for (const { object } of PLACED)
      if (!hasWebhook(object)) expect(await stored('eda', object), object.kind).to.deep.equal([]);
    const asked = new Set(rulebook.runs.map(({ meta }) => meta.endpoint));
    for (const { object } of PLACED)
      if (object.webhook !== undefined) expect(asked).to.include(object.webhook);
  });

  it('another hub that carries it takes what waits, and what follows its network says which hub could', async () => {
    await register('full', {});
    await becomes('volumes', 'm-volume', 'volume', 'full');
    await make('late-group', 'securityGroup', 'security_groups');
    await waits('late-group', /WebhookMissing: .*; carried by hub full$/);
    // The emptier one, but not all that lies in a network can be made there.
    await make('new-network', 'virtualNetwork', 'virtual_networks');
    await becomes('virtual_networks', 'new-network', 'virtualNetwork', 'full');
    await make('new-group', 'securityGroup', 'security_groups', { virtual_network: { id: 'new-network' } });
    await becomes('security_groups', 'new-group', 'securityGroup', 'full');
  });

  it('aap: a kind without a job template waits until there is one', async () => {
    const zone = 'by-jobs';
    await register('aap', { mode: 'aap', zone, endpoints: { aap: aap.url }, automation }, byJobs(aap));
    await make('job-network', 'virtualNetwork', 'virtual_networks', { zone });
    await make('job-volume', 'volume', 'volumes', { zone });
    await becomes('virtual_networks', 'job-network', 'virtualNetwork', 'aap');
    await becomes('volumes', 'job-volume', 'volume', 'aap');
    const inside = { virtual_network: { id: 'job-network' } };
    await make('job-subnet', 'subnet', 'subnets', { ...inside, ipv4_cidr: '10.0.1.0/24' });
    await make('job-group', 'securityGroup', 'security_groups', inside);
    await becomes('subnets', 'job-subnet', 'subnet', 'aap');
    await waits('job-group', /TemplateMissing: .*osac-create-security-group; carried by hub full$/);
    expect(await stored('aap', SECURITY_GROUP)).to.deep.equal([]);
    aap.addTemplate(template(names('create')(SECURITY_GROUP)));
    ok(await admin('PATCH', `${PRIVATE}/hubs/aap`, { metadata: { labels: { templates: 'all' } } }));
    await becomes('security_groups', 'job-group', 'securityGroup', 'aap');
  });

  it('all of it goes again, also what waited, and no hub keeps any', async () => {
    const mine = /^(m|late|new|job)-/;
    const left = async (): Promise<readonly (readonly [string, string])[]> => {
      const found: (readonly [string, string])[] = [];
      for (const { kind } of PLACED)
        for (const item of itemsOf(await admin('GET', `${PRIVATE}/${kind.collection}`))) {
          const id = textAt(item, 'id');
          if (mine.test(id)) found.push([kind.collection, id]);
        }
      return found;
    };
    let last: readonly (readonly [string, string])[] = [];
    await eventually(
      () => `all are gone: ${last.join(' ')}`,
      async () => {
        last = await left();
        await Promise.all(last.map(([collection, id]) => admin('DELETE', `${PRIVATE}/${collection}/${id}`)));
        return last.length === 0;
      },
      90_000,
      500,
    );
    for (const { kind, object } of PLACED)
      for (const hub of servers.keys()) {
        const ids = [`m-${kind.kind.toLowerCase()}`, 'late-group', 'new-network', 'new-group'];
        const held = await stored(hub, object);
        for (const id of ids) expect(held, `${hub} ${id}`).to.not.include(object.nameOf(id));
      }
  });
});
