import { expect } from 'chai';
import type { HubEvent } from '../../../../src/domain/hubs/hub.resource.ts';
import { hubFacts } from '../../../../src/domain/hubs/hub-facts.ts';
import { hub, type HubCommand } from '../../../../src/domain/hubs/hub.resource.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import type { SecretRef } from '../../../../src/domain/secret-ref.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const at = '2026-11-21T12:00:00.000Z';
const EDA_URL = 'https://rulebook.example:5000';
const AAP_URL = 'https://aap.example/api/controller';
const CA = '-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n';

type Secrets = { readonly [path: string]: SecretRef };
const ref = (version: string, kind: SecretRef['kind'] = 'automation-token'): SecretRef => ({
  id: 'hub.hub-1.spec.automation.token',
  version,
  kind,
  fingerprint: 'f',
});
const [EDA_TOKEN, AAP_TOKEN, KEY] = [ref('eda-1'), ref('aap-1'), ref('key-1', 'automation-key')];

const edaSpec: JsonObject = {
  namespace: 'osac-hub',
  mode: 'eda',
  endpoints: { eda: EDA_URL },
  automation: { ca: CA },
};
const edaHub: HubEvent = {
  type: 'HubRegistered',
  data: {
    id: 'hub-1',
    at,
    tenant: 'shared',
    project: '',
    name: 'hub-1',
    creator: 's',
    document: { spec: edaSpec },
    secrets: { 'spec.automation.token': EDA_TOKEN, 'spec.automation.hmac_secret': KEY },
  },
};
const revise = (spec: JsonObject, secrets?: { [path: string]: SecretRef | null }): HubCommand => ({
  type: 'ReviseDocument',
  at,
  document: { spec },
  ...(secrets === undefined ? {} : { secrets }),
});
const revised = (spec: JsonObject, secrets: Secrets): HubEvent => ({
  type: 'HubRevised',
  data: { at, document: { spec }, secrets },
});
const toAap = revise(
  { namespace: 'osac-hub', mode: 'aap', endpoints: { aap: AAP_URL } },
  { 'spec.automation.token': AAP_TOKEN },
);
const aapSpec: JsonObject = {
  namespace: 'osac-hub',
  mode: 'aap',
  endpoints: { aap: AAP_URL },
  automation: { eda: { ca: CA, endpoint: EDA_URL } },
};
const aapSecrets: Secrets = {
  'spec.automation.token': AAP_TOKEN,
  'spec.automation.hmac_secret': KEY,
  'spec.automation.eda.token': EDA_TOKEN,
  'spec.automation.eda.hmac_secret': KEY,
};

describe('hubs that are switched while orders run on them', () => {
  const { given } = specify(hub.decider);

  it('what the mode was called with is kept for its orders, and the new values are of the new mode', () => {
    given(edaHub).when(toAap).thenEvents(revised(aapSpec, aapSecrets));
  });
  it('so is what a mask of paths changes', () => {
    const command: HubCommand = {
      type: 'ReviseDocument',
      at,
      document: { spec: { mode: 'aap', endpoints: { aap: AAP_URL } } },
      paths: ['spec.mode', 'spec.endpoints', 'spec.automation.ca'],
      secrets: { 'spec.automation.token': AAP_TOKEN },
    };
    given(edaHub).when(command).thenEvents(revised(aapSpec, aapSecrets));
  });
  it('a later change of the new mode’s values leaves the kept ones alone', () => {
    const next = ref('aap-2');
    const { decision } = given(edaHub, revised(aapSpec, aapSecrets)).when(
      revise(aapSpec, { 'spec.automation.token': next }),
    );
    expect(decision).to.deep.equal([revised(aapSpec, { ...aapSecrets, 'spec.automation.token': next })]);
  });
  it('back again each mode has its own values, of which a change may say others', () => {
    const back = { ...aapSpec, mode: 'eda' };
    const { decision } = given(edaHub, revised(aapSpec, aapSecrets)).when(revise(back));
    expect(decision).to.deep.equal([
      revised(
        {
          namespace: 'osac-hub',
          mode: 'eda',
          endpoints: { aap: AAP_URL, eda: EDA_URL },
          automation: { ca: CA, aap: { endpoint: AAP_URL } },
        },
        {
          'spec.automation.token': EDA_TOKEN,
          'spec.automation.hmac_secret': KEY,
          'spec.automation.aap.token': AAP_TOKEN,
        },
      ),
    ]);
    const fresh = ref('eda-2');
    const said = given(edaHub, revised(aapSpec, aapSecrets)).when(
      revise(back, { 'spec.automation.token': fresh }),
    );
    const [event] = said.decision as HubEvent[];
    expect(event?.type === 'HubRevised' ? event.data.secrets : undefined).to.deep.include({
      'spec.automation.token': fresh,
      'spec.automation.aap.token': AAP_TOKEN,
    });
  });
  it('a mode without automation keeps the one before, and takes it up again', () => {
    const operator = { namespace: 'osac-hub', mode: 'operator' };
    const [away] = given(edaHub).when(revise(operator)).decision as HubEvent[];
    if (away === undefined) throw new Error('nothing was revised');
    const [again] = given(edaHub, away).when(
      revise({ namespace: 'osac-hub', mode: 'eda', automation: { eda: { endpoint: EDA_URL, ca: CA } } }),
    ).decision as HubEvent[];
    expect(again).to.deep.equal(
      revised(edaSpec, { 'spec.automation.token': EDA_TOKEN, 'spec.automation.hmac_secret': KEY }),
    );
  });
  it('what is stored goes to no other origin than it was given for, whichever way it is asked', () => {
    const elsewhere = 'https://evil.example:5000';
    const moved = { ...edaSpec, endpoints: { eda: elsewhere } };
    const refused = (history: readonly HubEvent[], command: HubCommand, field: string): void =>
      given(...history)
        .when(command)
        .thenRejected('SECRET_FOR_ANOTHER_ORIGIN', { field });
    const [token, key] = ['spec.automation.token', 'spec.automation.hmac_secret'];
    refused([edaHub], revise(moved), token);
    for (const other of ['https://rulebook.example', 'http://127.0.0.1:5000'])
      refused([edaHub], revise({ ...edaSpec, endpoints: { eda: other } }), token);
    refused([edaHub], revise(moved, { [token]: ref('eda-2') }), key);
    const both = { [token]: ref('eda-2'), [key]: ref('key-2', 'automation-key') };
    expect(given(edaHub).when(revise(moved, both)).decision).to.have.length(1);
    expect(given(edaHub).when(revise(moved, { [token]: null, [key]: null })).decision).to.have.length(1);
    const path = { ...edaSpec, endpoints: { eda: `${EDA_URL}/another/path` } };
    expect(given(edaHub).when(revise(path)).decision, 'the same origin').to.have.length(1);
    // Not in two steps, nor by another mode, nor by the place of a former one.
    const without = { namespace: 'osac-hub', mode: 'operator' };
    const [away] = given(edaHub).when(revise(without)).decision as HubEvent[];
    if (away === undefined) throw new Error('nothing was revised');
    const kept = 'spec.automation.eda.token';
    refused(
      [edaHub, away],
      revise({ ...without, automation: { eda: { ca: CA, endpoint: elsewhere } } }),
      kept,
    );
    refused([edaHub, away], revise({ ...without, mode: 'eda', endpoints: { eda: elsewhere } }), token);
    refused([edaHub], revise({ ...edaSpec, endpoints: { eda: EDA_URL, aap: elsewhere } }), token);
    refused([edaHub], revise({ ...edaSpec, mode: 'aap', endpoints: { aap: elsewhere } }), token);
    refused(
      [edaHub, revised(aapSpec, aapSecrets)],
      revise({ ...aapSpec, endpoints: { aap: AAP_URL, eda: elsewhere } }),
      kept,
    );
  });
  it('the values of the mode that the hub is in have one place', () => {
    given(edaHub)
      .when(revise({ ...edaSpec, automation: { eda: { endpoint: EDA_URL } } }))
      .thenRejected('INVALID_HUB', { field: 'spec.automation.eda' });
    given(edaHub)
      .when(revise(edaSpec, { 'spec.automation.eda.token': EDA_TOKEN }))
      .thenRejected('INVALID_HUB', { field: 'spec.automation.eda' });
  });
  it('those of another one may be given before the switch, and are checked like any', () => {
    const prepared = { ...edaSpec, automation: { ca: CA, aap: { endpoint: AAP_URL } } };
    expect(given(edaHub).when(revise(prepared)).decision).to.have.length(1);
    for (const [former, field] of [
      [{ endpoint: 'ftp://x' }, 'spec.automation.aap.endpoint'],
      [{ ca: 'nonsense' }, 'spec.automation.aap.ca'],
      [{ template_prefix: '../x' }, 'spec.automation.aap.template_prefix'],
    ] as const)
      given(edaHub)
        .when(revise({ ...edaSpec, automation: { aap: former } }))
        .thenRejected('INVALID_HUB', { field });
  });
  it('the facts of a hub name what is kept by mode', () => {
    expect(hubFacts({ id: 'hub-1', document: { spec: aapSpec } }).formerAutomation).to.deep.equal({
      eda: { templatePrefix: 'osac', ca: CA, endpoint: EDA_URL },
    });
    expect(hubFacts({ id: 'hub-1', document: { spec: edaSpec } })).not.to.have.property('formerAutomation');
  });
});
