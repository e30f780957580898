import { expect } from 'chai';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { Failpoint } from '../../../src/app/process-runner/types.ts';
import {
  isDone,
  orderToy,
  readAll,
  startToyRunner,
  toyStore,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { eventually } from '../../support/eventually.ts';
import { recordingLogger, silentLogger } from '../../support/loggers.ts';

const never = (): Promise<never> => new Promise(() => undefined);

/** What one incarnation sees of the store: from its death on it hears nothing any more. */
const mortal = (store: EventStore): EventStore & { die(): void } => {
  let dead = false;
  const whileAlive =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      if (dead) return never();
      const answer = await call(...args);
      return dead ? never() : answer;
    };
  return {
    ...store,
    append: whileAlive((...args: Parameters<EventStore['append']>) => store.append(...args)),
    currentRevision: whileAlive((stream: string) => store.currentRevision(stream)),
    async *subscribe(options) {
      for await (const item of store.subscribe(options)) {
        if (dead) await never();
        yield item;
      }
    },
    die: () => {
      dead = true;
    },
  };
};

/** While it hangs, a command gets no answer to its reads before it is given up. */
const hanging = (store: EventStore): EventStore & { hang(): void; hung(): number } => {
  let hangs = false;
  let hung = 0;
  return {
    ...store,
    async *readStream(stream, options) {
      if (hangs && stream.startsWith('toy-') && options?.signal !== undefined) {
        const { signal } = options;
        hung += 1;
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        signal.throwIfAborted();
      }
      yield* store.readStream(stream, options);
    },
    hang: () => {
      hangs = true;
    },
    hung: () => hung,
  };
};

describe('process runner on a store with several writers', () => {
  const running: ToyRunner[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((runner) => runner.stop()));
  });
  const start = (
    store: EventStore,
    workshop: ReturnType<typeof createWorkshop>,
    instance: string,
    failpoint?: Failpoint,
  ): ToyRunner =>
    startToyRunner({
      store,
      workshop,
      instance,
      more: {
        ownership: createLeases({
          store,
          instance,
          directory: instance,
          clock: systemClock(),
          timers: systemTimers(),
          logger: silentLogger,
          ttlMs: 150,
        })('processes'),
        settings: { stopGraceMs: 0 },
        ...(failpoint === undefined ? {} : { failpoint }),
      },
    });

  it('goes on in another instance after the owner died between the far side and the record of it', async () => {
    const store = toyStore(false);
    const workshop = createWorkshop();
    const line = mortal(store);
    const first = start(line, workshop, 'first', (name) => {
      if (name !== 'after-effect-before-record') return;
      line.die();
      return never();
    });
    await eventually('first owns', () => first.status().state === 'live');
    const second = start(store, workshop, 'second');
    running.push(second);
    await orderToy(store, { id: 't1', parts: ['body', 'wheel'] });
    await eventually('written to the far side', () => workshop.objects.size === 1);
    expect(second.status().state).to.equal('standby');
    await eventually('t1 is done', () => isDone(store, 't1'));
    expect([...workshop.objects.keys()]).to.deep.equal(['t1-body', 't1-wheel']);
    const starts = (await readAll(store, 'toyRun-t1')).filter((event) => event.type === 'EffectStarted');
    expect(starts.map((event) => event.data['epoch'])).to.deep.equal([1, 2, 2]);
    expect(starts.map((event) => event.metadata['instance'])).to.deep.equal(['first', 'second', 'second']);
  });

  it('goes over at once when the owner stops in good order', async () => {
    const store = toyStore(false);
    const workshop = createWorkshop();
    const first = start(store, workshop, 'first');
    await eventually('first owns', () => first.status().state === 'live');
    const second = start(store, workshop, 'second');
    running.push(second);
    await orderToy(store, { id: 't1' });
    await eventually('t1 is done', () => isDone(store, 't1'));
    await first.stop();
    await orderToy(store, { id: 't2' });
    await eventually('t2 is done', () => isDone(store, 't2'));
    expect(second.status().epoch).to.equal(2);
    expect(workshop.objects.size).to.equal(2);
  });

  it('gives its runs up without a line for each when the lease is lost', async () => {
    const store = hanging(toyStore(false));
    const logger = recordingLogger();
    const ids = ['t1', 't2', 't3', 't4', 't5'];
    const losing = new AbortController();
    const runner = startToyRunner({
      store,
      workshop: createWorkshop(),
      instance: 'loser',
      more: {
        logger,
        ownership: {
          hold: async (signal, whileOwner) => {
            await whileOwner({ epoch: 1, signal: AbortSignal.any([signal, losing.signal]) });
            // Another instance has it from now on.
            await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
          },
        },
        settings: { stopGraceMs: 0 },
      },
    });
    running.push(runner);
    await eventually('it owns', () => runner.status().state === 'live');
    store.hang();
    for (const id of ids) await orderToy(store, { id });
    await eventually('every run waits for its order', () => store.hung() >= ids.length);
    losing.abort();
    await eventually('it stands by', () => runner.status().state !== 'live');
    expect(logger.lines.filter(({ level }) => level === 'error' || level === 'warn')).to.deep.equal([]);
  });
});
