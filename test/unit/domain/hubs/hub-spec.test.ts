import { expect } from 'chai';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import { orderName } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { MAX_NAMESPACE, tenantNamespace, namespaceFits } from '../../../../src/domain/hubs/hub-facts.ts';
import { hub } from '../../../../src/domain/hubs/hub.resource.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { check } from '../../../support/property.ts';
import fc from 'fast-check';

const at = '2026-11-21T12:00:00.000Z';
const create = (spec: JsonObject, id = 'hub-1'): DocumentCommand => ({
  type: 'CreateDocument',
  at,
  id,
  tenant: 'shared',
  project: '',
  name: id,
  creator: 'system',
  document: { spec: { namespace: 'osac-hub', ...spec } },
});

const EDA = { mode: 'eda', endpoints: { eda: 'https://rulebook.osac:5000' } };
const PEM = '-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n';

describe("hubs: what a hub's spec may say", () => {
  const { given } = specify(hub.decider);
  const accepts = (spec: JsonObject, id?: string): void => {
    expect(given().when(create(spec, id)).decision, JSON.stringify(spec)).to.have.lengthOf(1);
  };
  const refuses = (spec: JsonObject, field: string, id?: string): void => {
    given().when(create(spec, id)).thenRejected('INVALID_HUB', { field });
  };

  it('the three modes, with what each needs', () => {
    accepts({});
    accepts(EDA);
    accepts({ ...EDA, controller: 'ledger' });
    accepts({ mode: 'aap', endpoints: { aap: 'https://aap.example/api/controller' } });
    refuses({ mode: 'eda' }, 'spec.endpoints.eda');
    refuses({ mode: 'aap', endpoints: { eda: 'https://x' } }, 'spec.endpoints.aap');
    refuses({ controller: 'ledger' }, 'spec.controller');
    refuses({ mode: 'operator', controller: 'ledger' }, 'spec.controller');
  });
  it('a simulated hub plays the operator and nothing else', () => {
    accepts({ mode: 'operator' }, 'sim-1');
    refuses(EDA, 'spec.mode', 'sim-1');
  });
  it('addresses that can be called and hold no credentials', () => {
    for (const eda of [
      'ftp://x',
      'x',
      'http://u:p@x',
      'http://x/?token=1',
      'http://x/#a',
      'http://a b',
      'https:x',
      'https://loc\u00adalhost',
    ])
      refuses({ mode: 'eda', endpoints: { eda } }, 'spec.endpoints.eda');
  });
  it('clear text stays on this machine, in the words of kubeconfigs, and is seen first', () => {
    for (const host of ['localhost:5000', '127.0.0.1', '127.8.0.1:80', '[::1]:5000'])
      accepts({ mode: 'eda', endpoints: { eda: `http://${host}` } });
    for (const host of ['rulebook', '10.0.0.1', 'localhost.evil.example', '127.0.0.1.evil.example', '[::2]'])
      for (const endpoints of [{ eda: `http://${host}` }, { eda: 'https://x', aap: `HTTP://${host}/x` }]) {
        // Much else is wrong with it.
        const spec = { mode: 'magic', namespace: '', endpoints, scheduling: 'closed' };
        refuses(spec, 'aap' in endpoints ? 'spec.endpoints.aap' : 'spec.endpoints.eda');
      }
    const { decision } = given().when(create({ mode: 'eda', endpoints: { eda: 'http://rulebook:5000' } }));
    expect(JSON.stringify(decision)).to.include(
      'the address is not https; plain http is taken on loopback only, because every order carries a pull secret',
    );
    refuses({ automation: { aap: { endpoint: 'http://aap.example' } } }, 'spec.automation.aap.endpoint');
  });
  it('an authority is certificates, and never a key', () => {
    accepts({ ...EDA, automation: { ca: PEM + PEM, template_prefix: 'osac-prod' } });
    refuses({ automation: { ca: 'nonsense' } }, 'spec.automation.ca');
    const key = PEM.replaceAll('CERTIFICATE', 'PRIVATE KEY');
    refuses({ automation: { ca: PEM + key } }, 'spec.automation.ca');
    refuses({ automation: { template_prefix: '../x' } }, 'spec.automation.template_prefix');
  });
  it('scheduling and pacing in their ranges', () => {
    for (const scheduling of ['open', 'cordoned', 'draining']) accepts({ scheduling });
    refuses({ scheduling: 'closed' }, 'spec.scheduling');
    accepts({ pacing: { calls_per_second: 0.5, burst: 1 } });
    refuses({ pacing: { calls_per_second: -1 } }, 'spec.pacing.calls_per_second');
    refuses({ pacing: { calls_per_second: 'NaN' } }, 'spec.pacing.calls_per_second');
    refuses({ pacing: { calls_per_second: 20_000 } }, 'spec.pacing.calls_per_second');
    refuses({ pacing: { calls_per_second: 5, burst: -3 } }, 'spec.pacing.burst');
    refuses({ pacing: { burst: 5 } }, 'spec.pacing.burst');
  });
  it('namespaces that leave room for those of a control plane', () => {
    const longest = 'n'.repeat(MAX_NAMESPACE);
    expect(namespaceFits(longest, orderName('any'))).to.equal(true);
    expect(namespaceFits(`${longest}n`, orderName('any'))).to.equal(false);
    accepts({ namespace: longest });
    refuses({ namespace: `${longest}n` }, 'spec.namespace');
    refuses({ namespaces: { acme: `${longest}n` } }, 'spec.namespaces.acme');
  });
  it("gives every tenant's own namespace a name with room, too", () => {
    const tenant = fc.string({ minLength: 1, maxLength: 300, unit: 'grapheme' });
    check(
      fc.property(tenant, (name) => {
        const namespace = tenantNamespace('osac-hub', name);
        expect(namespace).to.match(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
        expect(namespaceFits(namespace, orderName(name))).to.equal(true);
      }),
    );
  });
  it('puts no tenant into a namespace of the system, or of the hub', () => {
    expect(tenantNamespace('osac-hub', 'acme')).to.equal('acme');
    for (const name of ['default', 'kube-system', 'openshift', 'openshift-config', 'osac-hub'])
      expect(tenantNamespace('osac-hub', name))
        .to.match(/-[a-z0-9]{8,}$/)
        .and.not.equal(name);
  });
});
