import { expect } from 'chai';
import type { HubEvent } from '../../../../src/domain/hubs/hub.resource.ts';
import { DECOMMISSION_ANNOTATION, hub } from '../../../../src/domain/hubs/hub.resource.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const at = '2026-11-21T12:00:00.000Z';
const GIVEN_UP = { annotations: { [DECOMMISSION_ANNOTATION]: 'force' } };
const registered = (metadata: JsonObject = {}): HubEvent => ({
  type: 'HubRegistered',
  data: {
    id: 'hub-1',
    at,
    tenant: 'shared',
    project: '',
    name: 'hub-1',
    creator: 'system',
    document: { metadata, spec: { namespace: 'osac-hub' } },
  },
});
const requested = { type: 'HubDeregistrationRequested', data: { at } } as const;
const deregistered = { type: 'HubDeregistered', data: { at } } as const;
const finish = { type: 'FinishDeregistration', at } as const;
const remove = { type: 'DeleteDocument', at } as const;

describe('hubs that are given up with orders on them', () => {
  const { given } = specify(hub.decider);

  it('a hub goes at once, one that is given up begins to go and ends when nothing is left on it', () => {
    given(registered()).when(remove).thenEvents(deregistered);
    given(registered(GIVEN_UP)).when(remove).thenEvents(requested);
    given(registered(GIVEN_UP), requested).when(remove).thenNothing();
    given(registered(GIVEN_UP), requested).when(finish).thenEvents(deregistered);
    given(registered(GIVEN_UP), requested, deregistered).when(finish).thenNothing();
  });
  it('ends only on request, and not while somebody holds it by a finalizer', () => {
    given(registered(GIVEN_UP)).when(finish).thenNothing();
    given(registered({ ...GIVEN_UP, finalizers: ['mine'] }), requested)
      .when(finish)
      .thenNothing();
    given().when(finish).thenNothing();
  });
  it('is not ended by a change on the way, for example of its credentials', () => {
    const spec = { namespace: 'osac-hub', zone: 'east' };
    const revise = { type: 'ReviseDocument', at, document: { metadata: GIVEN_UP, spec } } as const;
    given(registered(GIVEN_UP), requested)
      .when(revise)
      .thenEvents({ type: 'HubRevised', data: { at, document: { metadata: GIVEN_UP, spec } } });
    const unmarked = { type: 'ReviseDocument', at, document: { spec } } as const;
    const { decision } = given(registered(GIVEN_UP), requested).when(unmarked);
    expect((decision as HubEvent[]).map(({ type }) => type)).to.deep.equal(['HubRevised']);
  });
});
