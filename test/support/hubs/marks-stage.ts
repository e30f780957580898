import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import {
  assertDeployment,
  DEPLOYMENT_STREAM,
  rebindDeployment,
  type Deployment,
} from '../../../src/app/deployment/deployment.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { createHubEpochs, DRIVING_STREAM } from '../../../src/app/hubs/hub-epochs.ts';
import { createHubMarks, type HubMarks } from '../../../src/app/hubs/hub-marks.ts';
import type { RegisteredHub } from '../../../src/app/hubs/hub-registry.ts';
import { HubError, type ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import type { Timers } from '../../../src/app/ports.ts';
import type { HubProblemFact } from '../../../src/domain/hubs/health-events.ts';
import { createFakeIds } from '../commands/fake-incarnation.ts';
import { fakeCluster } from './hub-fixture.ts';
import { silentLogger } from '../loggers.ts';
import { createMemoryMark } from './memory-mark.ts';
import type { ManualTime } from '../manual-time.ts';

export const HUB = 'hub-1';

/** An event log, and the data directory that it came with. */
export type Log = { readonly store: EventStore; readonly directory: string };

export type Service = {
  readonly deployment: Deployment;
  readonly log: Log;
  readonly marks: HubMarks;
  /** What the hub's document was told last; undefined: nothing yet. */
  told(): readonly HubProblemFact[] | undefined;
  isAlive(): boolean;
  /** Whether a write to the hub would go out now. */
  drives(): Promise<boolean>;
  stop(): Promise<void>;
  /** As kill -9: nothing is given back, and nothing of it happens any more. */
  kill(): void;
  /** As SIGSTOP and SIGCONT: what was due meanwhile is done right after it goes on. */
  suspend(): void;
  resume(): void;
};

/** What decides who drives. The embedded store has no lease to wait for. */
const COPIED: readonly string[] = [DEPLOYMENT_STREAM, DRIVING_STREAM];

/** Services on logs and copies of them, around the mark of one hub. */
export const marksStage = (time: ManualTime) => {
  const mark = createMemoryMark();
  const ids = createFakeIds('marks');
  let count = 0;
  const name = (what: string): string => {
    count += 1;
    return `${what}-${count}`;
  };

  const newLog = (): Log => ({
    store: createMemoryEventStore({ singleWriter: false }),
    directory: name('directory'),
  });

  /** What a backup or a copy of the files is: the same events in another place. */
  const copy = async (log: Log): Promise<Log> => {
    const to = newLog();
    for await (const { stream, revision, id, type, data, metadata } of log.store.readAll({ limit: 10_000 })) {
      if (!COPIED.includes(stream)) continue;
      const event = { id, type, data: JSON.stringify(data), metadata: JSON.stringify(metadata) };
      await to.store.append(stream, revision === 0 ? 'no_stream' : revision - 1, [event]);
    }
    return to;
  };

  /** `directory`: one of several on the same log, which is no embedded one then. */
  const start = async (log: Log, directory?: string): Promise<Service> => {
    const holder = directory ?? log.directory;
    const instance = name('instance');
    const { clock } = time;
    let alive = true;
    let suspended = false;
    let missed: (() => void)[] = [];
    const timers: Timers = {
      after: (ms, run) => time.timers.after(ms, () => (suspended ? missed.push(run) : alive && run())),
    };
    const gone = new Promise<never>(() => undefined);
    const whileAlive = async <T>(call: () => Promise<T>): Promise<T> => {
      if (!alive) return gone;
      const answer = await call();
      return alive ? answer : gone;
    };
    const adapter: ManagementCluster = fakeCluster(HUB, {
      readMark: (by) => whileAlive(() => mark.readMark(by)),
      writeMark: (next, over, by) => whileAlive(() => mark.writeMark(next, over, by)),
    });
    const deployment = await assertDeployment({
      store: log.store,
      fingerprint: 'f1',
      name: 'ledger',
      clock,
      ids,
      instance,
    });
    const health: { driver?: { ok: boolean } } = {};
    const hub = { facts: { id: HUB }, adapter, health } as unknown as RegisteredHub;
    let told: readonly HubProblemFact[] | undefined;
    const marks = createHubMarks({
      registry: {
        get: () => hub,
        hubs: () => [hub],
        onChange: (listener) => {
          listener(HUB, hub);
          return () => undefined;
        },
      },
      epochs: createHubEpochs({ store: log.store, clock, ids, instance, holder }),
      deployment,
      holder,
      report: async (_, problems) => {
        told = problems;
        health.driver = { ok: problems.length === 0 };
      },
      clock,
      timers,
      logger: silentLogger,
    });
    const ownership = marks.marking(
      createLeases({
        store: log.store,
        instance,
        directory: holder,
        exclusive: directory === undefined,
        clock,
        timers,
        logger: silentLogger,
      })('processes'),
    );
    const end = new AbortController();
    const ended = Promise.all([
      ownership.hold(
        end.signal,
        ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
      ),
      marks.run(end.signal),
    ]);
    await time.pass(0);
    return {
      deployment,
      log,
      marks,
      told: () => told,
      isAlive: () => alive,
      drives: async () => {
        if (!alive || suspended) return false;
        const given = new AbortController();
        const answer = marks.assertDriven(HUB, given.signal).then(
          () => true,
          (error: unknown) => {
            if (!(error instanceof HubError)) throw error;
            return false;
          },
        );
        await time.pass(0);
        given.abort();
        return Promise.race([answer, time.pass(0).then(() => false)]);
      },
      stop: async () => {
        end.abort();
        await time.pass(0);
        await ended;
        alive = false;
      },
      kill: () => {
        alive = false;
      },
      suspend: () => {
        suspended = true;
      },
      resume: () => {
        suspended = false;
        const due = missed;
        missed = [];
        for (const run of due) time.timers.after(1, () => alive && run());
      },
    };
  };

  return {
    mark,
    newLog,
    copy,
    start,
    rebind: (log: Log) => rebindDeployment(log.store, { clock: time.clock, ids, instance: name('restore') }),
  };
};
