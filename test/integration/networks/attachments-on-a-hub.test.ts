import { join } from 'node:path';
import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';
import { readHubObjects } from '../../support/hubs/hub-journal.ts';
import { eventually } from '../../support/eventually.ts';
import { itemsOf, PRIVATE, PUBLIC, textAt } from '../../support/http/service.ts';
import { ipAt, IPS, networkStory, ok, type NetworkStory } from '../../support/hubs/network-story.ts';

const ATTACHMENTS = `${PUBLIC}/external_ip_attachments`;
const CLUSTERS = `${PUBLIC}/clusters`;
const at = (id: string): string => `${PRIVATE}/external_ip_attachments/${id}`;
const clusterAt = (id: string): string => `${PRIVATE}/clusters/${id}`;
const ENDPOINT = 'EXTERNAL_IP_ATTACHMENT_ENDPOINT_';

/** The whole service with its simulated hubs: what becomes of external IPs that clusters are reached by. */
describe('external IP attachments on a simulated hub', () => {
  let whole: WholeService;
  let people: NetworkStory;
  let serial = 0;

  before(async () => {
    whole = await createWholeService();
    await whole.start();
    people = await networkStory(whole);
  });
  after(() => whole.dispose());

  const orderCluster = async (spec: object = {}) => {
    const metadata = {
      name: `c${(serial += 1)}`,
      annotations: { simulation: 'factor=0.02' },
    };
    return people.user('POST', CLUSTERS, {
      metadata,
      spec: { template: { id: 'osac.templates.ocp_small' }, pull_secret: '{"auths":{}}', ...spec },
    });
  };
  const attach = (
    ip: string,
    cluster: string,
    endpoint: string,
    more: object = {},
    headers: Record<string, string> = {},
  ) =>
    people.user(
      'POST',
      ATTACHMENTS,
      {
        metadata: { name: `a${(serial += 1)}`, annotations: { simulation: 'factor=0.05' } },
        spec: { external_ip: { id: ip }, cluster: { id: cluster }, target_endpoint: ENDPOINT + endpoint },
        ...more,
      },
      headers,
    );

  it('a cluster gets two addresses of its own accord, and they go before it', async () => {
    const refused = await orderCluster({ auto_external_ip_attachment: true });
    expect([refused.status, refused.json['code']], refused.text).to.deep.equal([400, 9]);
    await people.makePool('192.0.2.0/29', { 'fulfillment-ledger/quarantine': 'PT0S' });
    const order = ok(await orderCluster({ auto_external_ip_attachment: true }));
    const cluster = textAt(order, 'id');
    expect(objectAt(order as JsonObject, 'spec')).to.include({ auto_external_ip_attachment: true });
    await people.shows(clusterAt(cluster), 'READY');
    let made: readonly JsonObject[] = [];
    // The order does not wait for its addresses.
    await eventually('two attachments', async () => {
      made = (itemsOf(await people.user('GET', ATTACHMENTS)) as readonly JsonObject[]).filter(
        (item) => stringAt(objectAt(objectAt(item, 'spec'), 'cluster'), 'id') === cluster,
      );
      return made.length >= 2;
    });
    expect(made.map((item) => stringAt(objectAt(item, 'spec'), 'target_endpoint')).toSorted()).to.deep.equal([
      `${ENDPOINT}API`,
      `${ENDPOINT}INGRESS`,
    ]);
    for (const item of made) {
      const metadata = objectAt(item, 'metadata');
      expect(metadata['labels']).to.deep.equal({
        'osac.openshift.io/auto-created': 'true',
        'osac.openshift.io/auto-created-for': cluster,
      });
      expect(stringAt(metadata, 'name')).to.match(/^c\d+-(api|ingress)-/);
      const shown = await people.shows(at(stringAt(item, 'id')), 'READY');
      expect(shown['external_ip_address']).to.match(/^192\.0\.2\./);
    }
    ok(await people.user('DELETE', `${CLUSTERS}/${cluster}`));
    await people.isGone(clusterAt(cluster));
    for (const item of made) {
      const ip = stringAt(objectAt(objectAt(item, 'spec'), 'external_ip'), 'id');
      await people.isGone(at(stringAt(item, 'id')));
      await people.isGone(ipAt(ip));
    }
    const events = (await whole.log()).map(({ type, stream }) => `${type} ${stream.split('-')[0]}`);
    expect(events.lastIndexOf('ExternalIPAttachmentDeleted externalIpAttachment')).to.be.lessThan(
      events.indexOf('ExternalIPDeletionRequested externalIp'),
    );
    expect(events.lastIndexOf('ExternalIPDeleted externalIp')).to.be.lessThan(
      events.indexOf('ClusterDeleted cluster'),
    );
  });

  it('an address is attached to one endpoint by one attachment, and freed by the deletion of the cluster', async () => {
    const cluster = textAt(ok(await orderCluster()), 'id');
    await people.shows(clusterAt(cluster), 'READY');
    const hub = stringAt(await people.statusAt(clusterAt(cluster)), 'hub');
    const pool = await people.makePool('198.51.100.0/28', { 'fulfillment-ledger/hub': hub });
    const elsewhere = hub === 'sim-west-1' ? 'sim-east-1' : 'sim-west-1';
    const far = await people.makePool('198.51.100.16/28', { 'fulfillment-ledger/hub': elsewhere });
    const ips = [await people.order(pool), await people.order(pool), await people.order(far)] as const;
    for (const id of ips) await people.shows(ipAt(id), 'ALLOCATED');
    const [ip, other, distant] = ips;

    const [wrong, dry] = [
      await attach(distant, cluster, 'API'),
      await attach(ip, cluster, 'API', {}, { 'x-dry-run': 'true' }),
    ];
    expect([wrong.status, wrong.json['code']], wrong.text).to.deep.equal([400, 9]);
    expect(wrong.text).to.include(`are on different hubs: take one of pool '${pool}'`);
    expect(dry.status, dry.text).to.equal(200);
    for (const id of ips) expect(await people.statusAt(ipAt(id))).to.not.have.property('attached');

    const replies = await Promise.all(
      Array.from({ length: 64 }, (_, n) => attach(ip, cluster, n % 2 === 0 ? 'API' : 'INGRESS')),
    );
    const made = replies.filter(({ status }) => status === 200);
    expect(made.map(({ text }) => text)).to.have.length(1);
    const id = textAt(made[0]?.json ?? {}, 'id');
    const endpoint = stringAt(objectAt(made[0]?.json as JsonObject, 'spec'), 'target_endpoint');
    const second = await attach(other, cluster, endpoint.replace(ENDPOINT, ''));
    expect([second.status, second.json['code']], second.text).to.deep.equal([409, 6]);
    const shown = await people.shows(at(id), 'READY');
    const { address } = await people.statusAt(ipAt(ip));
    expect(shown).to.include({ external_ip_address: address, hub });
    expect(await people.statusAt(ipAt(ip))).to.include({ attached: true });
    expect(await people.statusAt(ipAt(other))).to.not.have.property('attached');
    const kept = await people.user('DELETE', `${IPS}/${ip}`);
    expect([kept.status, kept.json['code']], kept.text).to.deep.equal([400, 9]);

    ok(await people.user('DELETE', `${CLUSTERS}/${cluster}`));
    const late = await attach(other, cluster, 'API');
    expect(late.status, 'a cluster that goes takes no more').to.equal(400);
    await people.isGone(clusterAt(cluster));
    await people.isGone(at(id));
    expect(await people.statusAt(ipAt(ip))).to.not.have.property('attached');
    const log = await whole.log();
    const placeOf = (type: string, stream: string): number =>
      log.findIndex((event) => event.type === type && event.stream === stream);
    expect(placeOf('ExternalIPAttachmentDeleted', `externalIpAttachment-${id}`)).to.be.lessThan(
      placeOf('ClusterDeleted', `cluster-${cluster}`),
    );
    const objects = readHubObjects(join(whole.dataDir, 'hubs', `${hub}.sqlite`));
    expect(objects.filter((object) => object.id === id)).to.have.length(1);
    expect(objects.filter(({ kind }) => kind === 'ExternalIPAttachment').map((one) => one.id)).to.include(id);
  });

  it('one that is ordered before its cluster has a place waits for it, and goes with it', async () => {
    const pool = await people.makePool('198.51.100.32/28');
    const ip = await people.order(pool);
    await people.shows(ipAt(ip), 'ALLOCATED');
    const order = await orderCluster({ node_sets: { workers: { host_type: { id: 'fc430' }, size: 90 } } });
    const cluster = textAt(ok(order), 'id');
    const second = await orderCluster({ node_sets: { workers: { host_type: { id: 'fc430' }, size: 90 } } });
    const waiting = textAt(ok(second), 'id');
    await eventually('it waits for room', async () =>
      (await people.user('GET', `${CLUSTERS}/${waiting}`)).text.includes('WaitingForCapacity'),
    );
    const id = textAt(ok(await attach(ip, waiting, 'INGRESS')), 'id');
    await eventually('it says what it waits for', async () =>
      stringAt(await people.statusAt(at(id)), 'message').includes('its cluster is on no hub yet'),
    );
    ok(await people.user('DELETE', `${CLUSTERS}/${waiting}`));
    await people.isGone(clusterAt(waiting));
    await people.isGone(at(id));
    expect(await people.statusAt(ipAt(ip))).to.not.have.property('attached');
    ok(await people.user('DELETE', `${CLUSTERS}/${cluster}`));
  });
});
