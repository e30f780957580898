import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';
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
  const attach = (ip: string, cluster: string, endpoint: string, more: object = {}) =>
    people.user('POST', ATTACHMENTS, {
      metadata: { name: `a${(serial += 1)}`, annotations: { simulation: 'factor=0.05' } },
      spec: { external_ip: { id: ip }, cluster: { id: cluster }, target_endpoint: ENDPOINT + endpoint },
      ...more,
    });
  const typesOf = async (stream: string): Promise<readonly string[]> =>
    (await whole.log()).filter((event) => event.stream === stream).map(({ type }) => type);

  it('a cluster gets two addresses of its own accord, and they go before it', async () => {
    const refused = await orderCluster({ auto_external_ip_attachment: true });
    expect([refused.status, refused.json['code']], refused.text).to.deep.equal([400, 9]);
    await people.makePool('192.0.2.0/29', { 'fulfillment-ledger/quarantine': 'PT0S' });
    const order = ok(await orderCluster({ auto_external_ip_attachment: true }));
    const cluster = textAt(order, 'id');
    expect(objectAt(order as JsonObject, 'spec')).to.include({ auto_external_ip_attachment: true });
    await people.shows(clusterAt(cluster), 'READY');
    const made = (itemsOf(await people.user('GET', ATTACHMENTS)) as readonly JsonObject[]).filter(
      (item) => stringAt(objectAt(objectAt(item, 'spec'), 'cluster'), 'id') === cluster,
    );
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
    const order2 = (await whole.log()).map(({ type, stream }) => `${type} ${stream.split('-')[0]}`);
    expect(order2.lastIndexOf('ExternalIPAttachmentDeleted externalIpAttachment')).to.be.lessThan(
      order2.indexOf('ExternalIPDeletionRequested externalIp'),
    );
    expect(order2.lastIndexOf('ExternalIPDeleted externalIp')).to.be.lessThan(
      order2.indexOf('ClusterDeleted cluster'),
    );
  });
});
