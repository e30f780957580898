import { expect } from 'chai';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { objectAt } from '../../../../src/domain/json-tools.ts';
import {
  attachmentDecider,
  externalIpAttachment,
  type AttachmentCommand,
  type AttachmentEvent,
} from '../../../../src/domain/networks/external-ip-attachment.resource.ts';
import { actingExternalIpAttachment } from '../../../../src/domain/networks/external-ip-attachment.workflow.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { createStepRun, done, refused } from '../../../support/domain/step-run.ts';

const at = '2026-11-23T09:00:00.000Z';
const API = 'EXTERNAL_IP_ATTACHMENT_ENDPOINT_API';
const facts = { at, id: 'one', tenant: 't1', project: '', name: 'web', creator: 'someone' };
const spec = { external_ip: { id: 'ip', name: 'ip' }, cluster: { id: 'c', name: 'c' }, target_endpoint: API };
const order = (wanted: JsonObject): AttachmentCommand => ({
  type: 'CreateDocument',
  ...facts,
  document: { spec: wanted },
});
const ordered: AttachmentEvent = {
  type: 'ExternalIPAttachmentOrdered',
  data: { ...facts, document: { spec } },
};

describe('external IP attachments', () => {
  const { given } = specify(attachmentDecider);

  it('name an external IP, one target, and an endpoint exactly where the target has some', () => {
    given().when(order(spec)).thenEvents(ordered);
    const { external_ip: ip, cluster, target_endpoint: endpoint } = spec;
    for (const [wanted, field] of [
      [{ cluster, target_endpoint: endpoint }, 'spec.external_ip'],
      [{ external_ip: ip, target_endpoint: endpoint }, 'spec.cluster'],
      [{ external_ip: ip, cluster }, 'spec.target_endpoint'],
      [
        { external_ip: ip, cluster, target_endpoint: API.replace('API', 'UNSPECIFIED') },
        'spec.target_endpoint',
      ],
      [
        { external_ip: ip, compute_instance: { id: 'v', name: 'v' }, target_endpoint: endpoint },
        'spec.target_endpoint',
      ],
    ] as const)
      given()
        .when(order(wanted as JsonObject))
        .thenRejected('INVALID_ATTACHMENT', { kind: 'invalid', field });
    given()
      .when(order({ external_ip: ip, compute_instance: { id: 'v', name: 'v' } }))
      .thenEvents({
        type: 'ExternalIPAttachmentOrdered',
        data: {
          ...facts,
          document: { spec: { external_ip: ip, compute_instance: { id: 'v', name: 'v' } } },
        },
      });
  });
  it('never change', () => {
    for (const change of [
      { external_ip: { id: 'other', name: 'other' } },
      { cluster: { id: 'other', name: 'other' } },
      { target_endpoint: API.replace('API', 'INGRESS') },
    ])
      given(ordered)
        .when({ type: 'ReviseDocument', at, document: { spec: { ...spec, ...change } } })
        .thenRejected('IMMUTABLE_FIELD');
  });
  it('take their address first, then the endpoint of their target', () => {
    expect(externalIpAttachment.takes?.({ spec })).to.deep.equal([
      { kind: 'externalIp', id: 'ip', wanted: {} },
      { kind: 'cluster', id: 'c', wanted: { part: 'API' } },
    ]);
  });
});

describe('the way of an external IP attachment', () => {
  const begin = () => {
    const run = createStepRun(
      actingExternalIpAttachment.workflow as Workflow<{ readonly since: object }, RunEvent>,
      attachmentDecider,
    );
    run.command({ ...order(spec), at: run.now() } as AttachmentCommand);
    const shown = (): JsonObject => {
      const view = externalIpAttachment.view(run.subject());
      return view.exists ? objectAt(view.document, 'status') : {};
    };
    return { ...run, shown };
  };
  const HUB = { hub: 'sim-1', namespace: 'osac', simulated: true, controller: 'operator' };
  const seen = (object: object | null): object => ({ object, hub: HUB.hub });
  const toReady = (run: ReturnType<typeof begin>): void => {
    run.perform('attach', done({ address: '192.0.2.5' }));
    run.perform('place', done({ place: HUB }));
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Ready' }));
  };

  it('claims its address, follows it to its hub and shows it once the hub is done', () => {
    const run = begin();
    expect(run.effects()).to.deep.equal(['attach']);
    run.perform('attach', done({ address: '192.0.2.5' }));
    run.perform('place', done({ place: HUB }));
    expect(run.effect('apply').args['spec']).to.deep.equal({
      externalIP: 'ip',
      cluster: 'c',
      targetEndpoint: 'API',
    });
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Progressing' }));
    expect(run.shown()).to.deep.equal({ state: 'EXTERNAL_IP_ATTACHMENT_STATE_PENDING', hub: 'sim-1' });
    run.observe(seen({ phase: 'Ready' }));
    run.observe(seen({ phase: 'Ready' }));
    expect(run.shown()).to.deep.equal({
      state: 'EXTERNAL_IP_ATTACHMENT_STATE_READY',
      hub: 'sim-1',
      external_ip_address: '192.0.2.5',
    });
    expect(run.subjectTypes().filter((type) => type.endsWith('BecameReady'))).to.have.length(1);
    expect(run.isFolded()).to.equal(true);
  });
  it('waits, and says for what, woken by exactly that', () => {
    const run = begin();
    run.perform('attach', done({ waiting: 'its external IP has no address yet', on: 'ip' }));
    run.commands();
    expect(run.shown()).to.include({ message: 'its external IP has no address yet' });
    expect(run.timers()).to.deep.equal(['ask-again:ip']);
    run.fire('ask-again:ip');
    run.perform('attach', done({ address: '192.0.2.5' }));
    run.perform('place', done({ waiting: 'its cluster is on no hub yet', on: 'c' }));
    run.commands();
    expect(run.shown()).to.include({ message: 'its cluster is on no hub yet' });
    expect(run.timers()).to.deep.equal(['ask-again:c']);
    run.fire('ask-again:c');
    run.perform('place', done({ place: HUB }));
    expect(run.shown()).to.not.have.property('message');
  });
  it('fails when its ends are on different hubs, until somebody retries', () => {
    const run = begin();
    run.perform('attach', done({ address: '192.0.2.5' }));
    run.perform('place', refused);
    run.commands();
    expect(run.shown()['state']).to.equal('EXTERNAL_IP_ATTACHMENT_STATE_FAILED');
    expect(run.effects()).to.deep.equal([]);
    run.command({ type: 'RetryOrder', at: run.now() });
    run.commands();
    expect(run.effects()).to.deep.equal(['place']);
  });
  it('gives its address back after its absence was observed, and is gone after that', () => {
    const run = begin();
    toReady(run);
    run.command({ type: 'DeleteDocument', at: run.now() });
    expect(run.effects()).to.include('undo-apply').and.not.include('undo-attach');
    run.perform('undo-apply', done({ existed: true }));
    expect(run.effects()).to.not.include('undo-attach');
    run.observe(seen(null));
    run.commands();
    expect(run.effects()).to.include('undo-attach');
    expect(run.subjectTypes()).to.not.include('ExternalIPAttachmentDeleted');
    run.perform('undo-attach', done({ held: false }));
    run.commands();
    expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPAttachmentDeleted', true]);
  });
  it('shows no address any more once it was aborted', () => {
    const run = begin();
    toReady(run);
    run.observe(seen({ phase: 'Failed', message: 'no route' }));
    run.command({ type: 'AbortOrder', at: run.now(), reason: 'enough' });
    run.perform('undo-apply', done({ existed: false }));
    run.perform('undo-attach', done({ held: false }));
    run.commands();
    expect(run.shown()).to.deep.equal({
      state: 'EXTERNAL_IP_ATTACHMENT_STATE_FAILED',
      message: 'aborted: enough',
    });
    run.command({ type: 'RetryOrder', at: run.now() });
    run.commands();
    expect(run.effects()).to.deep.equal(['attach']);
  });
});
