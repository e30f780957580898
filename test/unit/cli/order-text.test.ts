import { expect } from 'chai';
import { orderText } from '../../../src/cli/commands/order-text.ts';
import type { OrderDetails } from '../../../src/http/ledger/order-operations.ts';
import type { Lane } from '../../../src/http/ledger/upkeep-operations.ts';

const AT = '2026-11-21T12:00:00.000Z';
const unknown = { status: 'Unknown' as const, reason: 'NotObservedYet', message: '' };
const told = { position: 's.1', at: AT, actor: 'system', correlation_id: 'c', data: {} };
const order: OrderDetails = {
  kind: 'cluster',
  id: 'c1',
  name: 'one',
  tenant: 'acme',
  state: 'progressing',
  revision: 1,
  ordered_at: AT,
  conditions: {
    ClusterAvailable: unknown,
    NodesReady: { status: 'False', reason: 'WaitingForNodes', message: '1 of 2' },
    InfrastructureReady: unknown,
    TemplateApplied: unknown,
  },
  run: { commands: [], effects: [], timers: [] },
  timeline: [{ ...told, type: 'ClusterOrdered', summary: 'It was ordered.' }],
};

describe('orders show', () => {
  it('shows the four conditions and the timeline', () => {
    const lines = orderText(order).split('\n');
    expect(lines).to.include('KIND     ID  NAME  TENANT  STATE        HUB');
    expect(lines).to.include('cluster  c1  one   acme    progressing  -');
    expect(lines).to.include('ClusterAvailable     Unknown  NotObservedYet   -');
    expect(lines).to.include('NodesReady           False    WaitingForNodes  1 of 2');
    expect(lines).to.include('Outstanding: nothing');
    expect(lines).to.include(`${AT}  ClusterOrdered  It was ordered.`);
  });

  it('lists the steps that the ledger does, with the ids under which the site journals them', () => {
    const steps = [
      {
        step: 'vlan',
        rule: 'l2',
        state: 'done' as const,
        effect: 'clusterOrder-c1/vlan:0.0',
        attempts: 1,
        started: AT,
        ended: AT,
      },
      { step: 'l2', rule: 'l2', state: 'waits' as const, waiting: 'not in effect yet' },
      { step: 'apply', state: 'pending' as const },
    ];
    const lines = orderText({ ...order, run: { commands: [], effects: [], timers: [], steps } }).split('\n');
    expect(lines.find((line) => line.startsWith('vlan'))).to.match(
      new RegExp(`^vlan +ledger \\(l2\\) +done +1 +${AT} +${AT} +clusterOrder-c1/vlan:0.0$`),
    );
    expect(lines.find((line) => line.startsWith('l2'))).to.include('waits: not in effect yet');
    expect(orderText(order)).to.not.include('RULE');
  });

  it('tells which steps are skipped, and that it is aborted, by whom and why', () => {
    const made = { at: AT, by: 'u1', reason: 'done by hand' };
    const run = { commands: [], effects: [], timers: [] };
    const skipped = [{ ...made, step: 'dns' }];
    const lines = orderText({ ...order, run: { ...run, skipped } }).split('\n');
    expect(lines).to.include(`Step dns skipped by user u1 at ${AT}: done by hand`);
    expect(orderText({ ...order, run: { ...run, skipped: [], aborted: made } }).split('\n')).to.include(
      `Aborted by user u1 at ${AT}: done by hand`,
    );
    expect(orderText(order)).not.to.match(/skipped|Aborted/);
  });

  it('tells of one that is gone what was observed last, and nothing that is still to come', () => {
    const { NodesReady } = order.conditions;
    const gone: OrderDetails = { ...order, state: 'deleted', conditions: { NodesReady } as never };
    const lines = orderText(gone).split('\n');
    expect(lines).to.include('LAST CONDITION  STATUS  REASON           MESSAGE');
    expect(lines).to.include('NodesReady      False   WaitingForNodes  1 of 2');
    expect(lines).to.include('Outstanding: nothing');
    const { run: _none, ...never } = gone;
    const failure = { reason: 'Timeout', message: 'no answer', permanent: true };
    const text = orderText({ ...never, conditions: {}, failure });
    expect(text).to.include('Conditions: none was observed before it was deleted');
    expect(text).to.include('Had failed before it was deleted: Timeout: no answer');
    expect(text).not.to.match(/retry|has not begun|Unknown/);
  });

  it('says what an order waits for that is no hub', () => {
    const waiting = { message: 'the pool has no free address' };
    const text = orderText({ ...order, kind: 'externalIp', hub: 'h1', conditions: {}, waiting });
    expect(text.split('\n')).to.include('Waits: the pool has no free address');
    expect(text).to.not.include('CANDIDATE');
  });

  it('says whether a failure is still being tried', () => {
    const failure = { reason: 'ValidationFailed', message: 'no such key', permanent: true };
    expect(orderText({ ...order, failure })).to.include('(it waits for a retry or a deletion)');
    const tried = { ...failure, permanent: false };
    expect(orderText({ ...order, failure: tried })).to.include('(it is still being tried)');
  });

  it('says nothing of conditions where a kind has none', () => {
    const text = orderText({ ...order, kind: 'externalIp', state: 'allocated', conditions: {} });
    expect(text).not.to.match(/condition|deleted/i);
    expect(text.split('\n')).to.include('Outstanding: nothing');
  });

  it('says which lane holds its effects back, and nothing of lanes that work or are of others', () => {
    const effects = [{ operation: 'applyObject', attempt: 2, mode: 'perform', lane: 'hub:h1' }];
    const run = { commands: [], effects, timers: [] };
    const lanes: Lane[] = [
      { lane: 'hub:h2', breaker: 'open', paused: false, last_reason: 'Unavailable' },
      { lane: 'hub:h1', breaker: 'open', paused: false, last_reason: 'Unauthorized' },
    ];
    const text = orderText({ ...order, run }, lanes);
    expect(text.split('\n')).to.include(
      'Waits for lane hub:h1: breaker open, Unauthorized (ledgerctl lanes list)',
    );
    expect(text).to.not.include('hub:h2');
    const paused: Lane[] = [{ lane: 'hub:h1', breaker: 'closed', paused: true }];
    expect(orderText({ ...order, run }, paused)).to.include('Waits for lane hub:h1: paused (');
    const working: Lane[] = [{ lane: 'hub:h1', breaker: 'closed', paused: false }];
    expect(orderText({ ...order, run }, working)).to.not.include('Waits for lane');
  });

  it('names the last error of a step that is tried again in a lane that works', () => {
    const effects = [{ operation: 'applyObject', attempt: 6, mode: 'perform', lane: 'hub:h1' }];
    const run = { commands: [], effects, timers: [] };
    const failing = [
      { order: 'c1', failures: 5, reason: 'Forbidden', message: '403, denied', set_aside: true },
      { order: 'c2', failures: 1, reason: 'Unavailable', message: 'gone', set_aside: false },
    ];
    const lanes: Lane[] = [{ lane: 'hub:h1', breaker: 'closed', paused: false, failing }];
    const text = orderText({ ...order, run }, lanes);
    expect(text.split('\n')).to.include(
      'Failing in lane hub:h1 (set aside): Forbidden: 403, denied (failures: 5; the service retries by itself)',
    );
    expect(text).to.not.include('gone');
  });

  it('says of a cluster on a hub that it waits for room, of others that they wait for a hub', () => {
    const waiting = { message: 'waiting for 2 × fc430', decision: { candidates: [] } };
    expect(orderText({ ...order, waiting })).to.include('Waits for a hub: waiting for 2 × fc430');
    const placed = orderText({ ...order, hub: 'sim-1', waiting });
    expect(placed).to.include('Waits for room on its hub: waiting for 2 × fc430');
  });

  it('says who decided what, where it was not the service itself', () => {
    const timeline = [
      { ...told, type: 'ClusterOrdered', summary: 'It was ordered.', actor: 'user-1' },
      { ...told, type: 'HubSelected', summary: 'A hub was selected.', actor: 'system' },
    ];
    const lines = orderText({ ...order, timeline }).split('\n');
    expect(lines).to.include(`${AT}  ClusterOrdered  It was ordered. By user user-1.`);
    expect(lines).to.include(`${AT}  HubSelected     A hub was selected.`);
  });

  it('shows what it waits for, with every candidate and what is against it', () => {
    const candidates = [
      { hub: 'sim-1', fits: false, reasons: ['zone is east, wanted west', 'full'] },
      { hub: 'sim-2', fits: true, reasons: [] },
    ];
    const lines = orderText({ ...order, waiting: { message: 'none fits', decision: { candidates } } }).split(
      '\n',
    );
    expect(lines).to.include('Waits for a hub: none fits');
    expect(lines).to.include('sim-1      no    zone is east, wanted west; full');
    expect(lines).to.include('sim-2      yes   -');
  });

  it('shows why it failed, and the step and the number of its tries', () => {
    const text = orderText({
      ...order,
      failure: { reason: 'Timeout', message: 'no answer', permanent: true },
      timeline: [
        ...order.timeline,
        { ...told, type: 'EffectFailed', summary: 'Step apply:0 failed.', data: { attempt: 1 } },
        { ...told, type: 'EffectStalled', summary: 'Step apply:0 does not succeed.', data: { attempts: 5 } },
        { ...told, type: 'ClusterFailed', summary: 'The order failed.' },
      ],
    });
    expect(text).to.include('Failed: Timeout: no answer (it waits for a retry or a deletion)');
    expect(text).to.include('Last step: Step apply:0 does not succeed. (attempt 5)');
  });

  it('shows what the hub or its job said, of an order and of a change that failed', () => {
    const detail = 'job 7 ended as Failed: no hosts on aap.internal';
    const message = "the provider's automation failed (correlation id c-1)";
    const failed = orderText({
      ...order,
      failure: { reason: 'JobFailed', message, detail, permanent: false },
    });
    expect(failed).to.include(`The hub said: ${detail}`);
    expect(orderText({ ...order, message, change_failed: { detail } })).to.include(
      `${message}\n\nThe hub said: ${detail}`,
    );
    expect(orderText({ ...order, waiting: { message: 'it is not gone yet', detail } })).to.include(
      `Waits: it is not gone yet\n\nThe hub said: ${detail}`,
    );
    expect(orderText(order)).to.not.include('The hub said');
  });

  it('shows what is outstanding: effects with their attempts, timers, commands', () => {
    const lines = orderText({
      ...order,
      run: {
        commands: ['RecordPlaced'],
        effects: [
          { operation: 'apply', attempt: 3, mode: 'perform', lane: 'hub:sim-1', not_before: AT },
          { operation: 'observe', attempt: 1, mode: 'observe', lane: 'hub:sim-1' },
        ],
        timers: [{ timer: 'deadline:ready', due_at: AT }],
      },
    }).split('\n');
    expect(lines).to.include(`effect       apply           3        perform  hub:sim-1  not before ${AT}`);
    expect(lines).to.include('effect       observe         1        observe  hub:sim-1  now');
    expect(lines).to.include(`timer        deadline:ready  -        -        -          due ${AT}`);
    expect(lines).to.include('command      RecordPlaced    -        -        -          now');
  });

  it('shows that a fault has stopped it', () => {
    const run = { parked: 'a bug', commands: [], effects: [], timers: [] };
    expect(orderText({ ...order, run })).to.include('\n\nStopped by a fault: a bug (nothing happens');
  });

  it('shows what its hub has not let go of, and any other reason', () => {
    expect(orderText({ ...order, waiting_for: ['infrastructure'] })).to.include(
      'Waits for its hub to remove: infrastructure',
    );
    expect(orderText({ ...order, message: 'the hub holds it' })).to.include('\nthe hub holds it\n');
  });
});
