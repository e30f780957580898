import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createCommandRunner } from '../../../src/app/commands/command-runner.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { createProcessRunner } from '../../../src/app/process-runner/process-runner.ts';
import type { Aggregates } from '../../../src/app/process-runner/types.ts';
import { describeRun } from '../../../src/composition/system.ts';
import { actingKindOf } from '../../../src/domain/acting-kinds.ts';
import type { ActingKind, AnyWorkflow } from '../../../src/domain/acting-kind.ts';
import { clusterDecider } from '../../../src/domain/clusters/decide.ts';
import { clusterEventTypes } from '../../../src/domain/clusters/event-types.ts';
import type { ClusterCommand } from '../../../src/domain/clusters/commands.ts';
import { type ClusterEvent, isStoredCluster, type ClusterState } from '../../../src/domain/clusters/state.ts';
import { listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { clusterAggregate } from '../../../src/domain/kinds.ts';
import { processEventTypes } from '../../../src/domain/process/event-types.ts';
import { stepWorkflow } from '../../../src/domain/process/step-workflow.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import type { EffectOutcome } from '../../../src/domain/workflow.ts';
import { eventually } from '../../support/eventually.ts';
import {
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { silentLogger } from '../../support/loggers.ts';
import { readAll } from '../../support/process-runner/toy-workflow.ts';
import { CLUSTERS, SMALL } from './ordering.ts';

const LEDGER = '/api/ledger/v1';
const REASON = 'the mason is ill';

/** A kind of the shape of clusters whose orders are built of three parts; nothing in `src` names it. */
const work = (name: string, after: readonly string[]) => {
  const call = (operation: string) => ({ port: 'yard', operation, args: { part: name }, lane: 'yard' });
  return {
    name,
    after,
    work: () => ({ call: call('build') }),
    undo: {
      call: () => call('remove'),
      look: () => call('look'),
      absent: (_run: unknown, answer: JsonObject) => answer['there'] === false,
    },
  };
};

const workflow = stepWorkflow<ClusterState, ClusterCommand, ClusterEvent>({
  name: 'clusterOrder',
  subject: {
    category: 'cluster',
    types: clusterEventTypes.map(({ type }) => type),
    decider: clusterDecider,
    idOf: (cluster) => (isStoredCluster(cluster) ? cluster.id : ''),
  },
  begins: isStoredCluster,
  ends: (cluster) =>
    isStoredCluster(cluster) && cluster.deletionRequestedAt !== undefined ? 'gone' : undefined,
  steps: [
    work('base', []),
    { ...work('walls', ['base']), mayBeSkipped: true },
    { ...work('roof', ['walls']), pivot: true },
  ],
});

const house = (): ActingKind => {
  const cluster = actingKindOf('cluster');
  if (cluster === undefined) throw new TypeError('clusters act');
  const { retry: _none, ...order } = cluster.order;
  /** Says of no failure whether it is still being tried. */
  const details: typeof order.details = (state) => ({
    ...order.details(state),
    failure: { failure: { reason: 'NoMason', message: 'ill' } },
  });
  return {
    ...cluster,
    workflow: workflow as unknown as AnyWorkflow,
    order: { ...order, details, abort: true },
  };
};

/** The far side: what stands there, and what it does with walls. */
const createYard = () => {
  const parts = new Set<string>();
  const yard = {
    parts,
    walls: async (): Promise<EffectOutcome> => ({ outcome: 'refused', reason: 'NoMason', message: 'ill' }),
    port: async (operation: string, args: JsonObject): Promise<EffectOutcome> => {
      const name = stringAt(args, 'part');
      if (operation === 'build') {
        const outcome: EffectOutcome = name === 'walls' ? await yard.walls() : built;
        if (outcome.outcome === 'done') parts.add(name);
        return outcome;
      }
      if (operation === 'remove') parts.delete(name);
      return { outcome: 'done', result: { there: parts.has(name) } };
    },
  };
  return yard;
};

const built: EffectOutcome = { outcome: 'done', result: { there: true } };

describe('decisions about the work on an order', () => {
  const codec = createEventCodec(eventTypes);
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let yard: ReturnType<typeof createYard>;
  let stop: AbortController;
  let ended: Promise<void>;
  /** What comes before an append that holds an event of this type, once; on the side of HTTP and of the runner. */
  let beforeAppend: { readonly type: string; readonly what: () => Promise<void> } | undefined;
  let serial = 0;

  const racing = (store: EventStore): EventStore => ({
    ...store,
    append: async (stream, expected, events, options) => {
      const race = beforeAppend;
      if (race !== undefined && events.some(({ type }) => type === race.type)) {
        beforeAppend = undefined;
        await race.what();
      }
      return store.append(stream, expected, events, options);
    },
  });

  before(async () => {
    const store = racing(createMemoryEventStore());
    service = await startTestService({
      store,
      ledger: {
        acting: [house()],
        runOf: (kind, id) => describeRun(kind, id, store, codec, () => undefined),
      },
    });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    stop = new AbortController();
    const clock = systemClock();
    const instance = 'builders';
    const runner = createProcessRunner({
      store,
      codec,
      commandRunner: createCommandRunner({
        store,
        codec,
        clock,
        instance,
        recordRejection: () => undefined,
      }),
      aggregates: { cluster: clusterAggregate } as unknown as Aggregates,
      workflows: [workflow as never],
      runEventTypes: processEventTypes.map(({ type }) => type),
      effectPorts: { yard: (operation, args) => yard.port(operation, args) },
      clock,
      timers: systemTimers(),
      instance,
      logger: silentLogger,
      ownership: { hold: (signal, whileOwner) => whileOwner({ epoch: 1, signal }) },
      dataFile: ':memory:',
    });
    ended = runner.start(stop.signal);
  });
  beforeEach(() => {
    yard = createYard();
    beforeAppend = undefined;
  });
  after(async () => {
    stop.abort();
    await ended;
    await service.close();
  });

  const order = async (): Promise<string> => {
    const body = { metadata: { name: `house-${(serial += 1)}` }, spec: SMALL };
    return textAt((await user('POST', CLUSTERS, body)).json, 'id');
  };
  const typesOf = async (id: string): Promise<readonly string[]> =>
    (await readAll(service.store, `clusterOrder-${id}`)).map(({ type }) => type);
  const reaches = (id: string, type: string): Promise<void> =>
    eventually(`${type} of ${id}`, async () => (await typesOf(id)).includes(type));
  const say = (id: string, what: string, body: JsonObject = { reason: REASON }, headers = {}) =>
    admin('POST', `${LEDGER}/orders/${id}/${what}`, body, headers);
  const walls = { step: 'walls', reason: REASON };
  const standing = (...parts: readonly string[]): Promise<void> =>
    eventually(`standing: ${parts.join(', ')}`, () => [...yard.parts].join() === parts.join());

  it('skip a step: what comes after it goes on, and the order says who skipped it and why', async () => {
    const id = await order();
    await reaches(id, 'EffectRefused');
    const skipped = await say(id, 'skip', walls);
    expect(skipped.status, skipped.text).to.equal(200);
    expect(skipped.headers.get('x-ledger-position')).to.match(/^memory\./);
    await standing('base', 'roof');
    const shown = await admin('GET', `${LEDGER}/orders/${id}`);
    const [decision] = listAt(objectAt(shown.json as JsonObject, 'run'), 'skipped');
    expect(decision).to.include(walls);
    const by = stringAt(decision, 'by');
    expect(by).to.match(/^[0-9a-f-]{36}$/);
    const timeline = listAt(shown.json as JsonObject, 'timeline');
    expect(timeline.find((entry) => stringAt(entry, 'type') === 'StepSkipped')).to.include({
      summary: `Step walls was skipped: ${REASON}.`,
      actor: by,
    });
    expect((await say(id, 'skip', { ...walls, reason: 'again' })).json, 'it holds already').to.deep.equal(
      skipped.json,
    );
  });

  it('are waited for once a step was refused, and not while anything is tried', async () => {
    const answer = Promise.withResolvers<EffectOutcome>();
    yard.walls = () => answer.promise;
    const id = await order();
    await standing('base');
    const failure = async () =>
      objectAt((await admin('GET', `${LEDGER}/orders/${id}`)).json as JsonObject, 'failure');
    expect(await failure()).to.deep.equal({ reason: 'NoMason', message: 'ill', permanent: false });
    answer.resolve({ outcome: 'refused', reason: 'NoMason', message: 'ill' });
    await reaches(id, 'EffectRefused');
    expect(await failure()).to.deep.equal({ reason: 'NoMason', message: 'ill', permanent: true });
  });

  it('take a skipped step up again', async () => {
    const id = await order();
    await reaches(id, 'EffectRefused');
    await say(id, 'skip', walls);
    await standing('base', 'roof');
    yard.walls = async () => built;
    const resumed = await say(id, 'resume', walls);
    expect(resumed.json, resumed.text).to.deep.equal({ id, skipped: [] });
    await standing('base', 'roof', 'walls');
  });

  it('abort an order: what was begun is undone, and the same answer comes the second time', async () => {
    const id = await order();
    await reaches(id, 'EffectRefused');
    const stale = await say(id, 'abort', undefined, { 'if-match': '"cluster-99"' });
    expect(stale.json, stale.text).to.include({ status: 409, code: 'VERSION_MISMATCH' });
    const headers = { 'x-ledger-ticket': 'CHG-9', 'idempotency-key': `abort-${id}` };
    const aborted = await say(id, 'abort', undefined, headers);
    expect(aborted.status, aborted.text).to.equal(200);
    expect(aborted.json['aborted']).to.include({ reason: REASON });
    await standing();
    expect((await say(id, 'abort', { reason: 'again' })).json).to.deep.equal(aborted.json);
    expect((await say(id, 'abort', undefined, headers)).json).to.deep.equal(aborted.json);
    expect((await say(id, 'abort', { reason: 'other' }, headers)).status).to.equal(422);
    const shown = await admin('GET', `${LEDGER}/orders/${id}`);
    expect((shown.json['run'] as JsonObject)['aborted']).to.deep.equal(aborted.json['aborted']);
    const [stored] = (await readAll(service.store, `clusterOrder-${id}`)).filter(
      ({ type }) => type === 'RunAborted',
    );
    expect(stored?.metadata).to.deep.include({ tenant: 't1', ticket: 'CHG-9', command: 'AbortRun' });
    const actor = objectAt(stored?.metadata as JsonObject, 'actor');
    expect(stored?.data).to.include({ by: actor['subjectId'] });
  });

  it('retry the run of a kind that has no retry of its own', async () => {
    const id = await order();
    await reaches(id, 'EffectRefused');
    yard.walls = async () => built;
    const retried = await admin('POST', `${LEDGER}/orders/${id}/retry`);
    expect(retried.status, retried.text).to.equal(200);
    expect(retried.json).to.deep.equal({ id, revision: 0 });
    await standing('base', 'walls', 'roof');
    expect(await typesOf(id)).to.include('RunRetried');
  });

  it('are refused where they come too late, and of an order that is deleted', async () => {
    yard.walls = async () => built;
    const id = await order();
    await standing('base', 'walls', 'roof');
    const roof = async (): Promise<boolean> =>
      (await typesOf(id)).filter((type) => type === 'EffectSucceeded').length === 3;
    await eventually('the roof is recorded', roof);
    const late = await say(id, 'abort');
    expect(late.status, late.text).to.equal(400);
    expect(late.json).to.include({ code: 'PIVOT_PASSED' });
    expect((await user('DELETE', `${CLUSTERS}/${id}`)).status).to.equal(200);
    expect((await say(id, 'abort')).json).to.include({ code: 'ORDER_DELETED' });
    expect(await typesOf(id)).not.to.include('RunAborted');
  });

  it('are refused for steps that there are not, with those that may be skipped', async () => {
    const id = await order();
    for (const [step, code] of [
      ['moat', 'UNKNOWN_STEP'],
      ['base', 'NOT_SKIPPABLE'],
    ] as const) {
      const refused = await say(id, 'skip', { step, reason: REASON });
      expect(refused.status, refused.text).to.equal(400);
      expect(refused.json).to.include({ code });
      expect(refused.json['detail']).to.match(/steps that may be skipped: walls$/);
    }
  });

  describe('that cross what the runner appends', () => {
    it('are appended behind it', async () => {
      const answer = Promise.withResolvers<EffectOutcome>();
      yard.walls = () => answer.promise;
      const id = await order();
      await eventually('the walls are begun', async () =>
        (await readAll(service.store, `clusterOrder-${id}`)).some(
          ({ type, data }) => type === 'EffectStarted' && data['effectId'] === 'walls:0',
        ),
      );
      beforeAppend = {
        type: 'RunAborted',
        what: async () => {
          answer.resolve({ outcome: 'refused', reason: 'NoMason', message: 'ill' });
          await reaches(id, 'EffectRefused');
        },
      };
      expect((await say(id, 'abort')).status).to.equal(200);
      expect(beforeAppend, 'they crossed').to.equal(undefined);
      const types = await typesOf(id);
      expect(types.indexOf('RunAborted')).to.be.greaterThan(types.indexOf('EffectRefused'));
      await standing();
    });

    it('are seen by the runner, which appends behind them', async () => {
      const id = Promise.withResolvers<string>();
      beforeAppend = {
        type: 'EffectRefused',
        what: async () => {
          expect((await say(await id.promise, 'abort')).status).to.equal(200);
        },
      };
      const ordered = await order();
      id.resolve(ordered);
      await standing();
      await eventually('the base is undone', async () =>
        (await readAll(service.store, `clusterOrder-${ordered}`)).some(
          ({ type, data }) => type === 'EffectSucceeded' && data['effectId'] === 'undo-base:0',
        ),
      );
      expect(beforeAppend, 'they crossed').to.equal(undefined);
      const types = await typesOf(ordered);
      expect(types.filter((type) => type === 'RunAborted')).to.have.length(1);
      expect(types.indexOf('RunAborted')).to.be.greaterThan(types.indexOf('EffectStarted'));
    });
  });
});

describe('decisions about clusters', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let id: string;
  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    const body = { metadata: { name: 'plain' }, spec: SMALL };
    id = textAt((await user('POST', CLUSTERS, body)).json, 'id');
  });
  after(() => service.close());

  it('are refused with the way there is', async () => {
    const abort = await admin('POST', `${LEDGER}/orders/${id}/abort?kind=cluster`, { reason: REASON });
    expect(abort.status, abort.text).to.equal(400);
    expect(abort.json).to.include({
      code: 'NO_ABORT',
      detail: 'the hub does every step of this order: delete the cluster instead',
    });
    for (const verb of ['skip', 'resume']) {
      const body = { step: 'apply', reason: REASON };
      const refused = await admin('POST', `${LEDGER}/orders/${id}/${verb}`, body);
      expect(refused.status, refused.text).to.equal(400);
      expect(refused.json['detail']).to.match(/steps that may be skipped: agent-addresses, dns, /);
    }
  });

  it('are only for provider admins, and about orders that there are', async () => {
    const path = `${LEDGER}/orders/${id}/abort`;
    expect((await user('POST', path, { reason: REASON })).status).to.equal(403);
    expect((await admin('POST', `${path}?kind=hub`, { reason: REASON })).status).to.equal(400);
    for (const verb of ['skip', 'resume', 'abort']) {
      const body = { reason: REASON, ...(verb === 'abort' ? {} : { step: 'apply' }) };
      expect((await admin('POST', `${LEDGER}/orders/nope/${verb}`, body)).status).to.equal(404);
    }
  });

  it('need a reason, and hold nothing else', async () => {
    const refusalOf = async (verb: string, body: JsonObject) => {
      const { status, json } = await admin('POST', `${LEDGER}/orders/${id}/${verb}`, body);
      expect(status).to.equal(400);
      return json['detail'];
    };
    expect(await refusalOf('skip', { step: 'apply' })).to.equal(
      "field 'reason' must be a text of 1 to 200 characters",
    );
    expect(await refusalOf('skip', { step: 'apply', reason: ' ' })).to.include("field 'reason' must be");
    expect(await refusalOf('skip', { step: 'apply', reason: 'x'.repeat(201) })).to.include(
      "field 'reason' must be",
    );
    expect(await refusalOf('skip', { reason: REASON })).to.include("field 'step' must be");
    expect(await refusalOf('skip', { reason: REASON, step: 'apply', by: 'me' })).to.equal(
      "unknown field 'by'; this route takes reason, step",
    );
  });
});
