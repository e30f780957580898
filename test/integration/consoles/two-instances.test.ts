import { expect } from 'chai';
import { PassThrough } from 'node:stream';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { openConsoleKeyFiles } from '../../../src/adapters/keys/console-keys.ts';
import { serialPrompt } from '../../../src/adapters/management-cluster/simulated/consoles/serial.ts';
import { systemClock, systemIds, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createCommandRunner } from '../../../src/app/commands/command-runner.ts';
import { ConsoleRefused } from '../../../src/app/consoles/console-line.ts';
import { createConsoles, type ConsoleSettings } from '../../../src/app/consoles/consoles.ts';
import { duplexLine } from '../../../src/app/consoles/duplex-line.ts';
import { createTickets, type Ticket } from '../../../src/app/consoles/tickets.ts';
import { HubError, type ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import { computeInstance } from '../../../src/domain/compute/compute-instance.resource.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import { aggregateOf } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { collect, fakeContext } from '../../support/commands/fake-context.ts';
import { eventually } from '../../support/eventually.ts';
import { rejection } from '../../support/eventstoredb-peer/fixture.ts';
import { recordingLogger } from '../../support/hubs/kubernetes-hub.ts';
import { temporaryFolders } from '../../support/projections/open-notes.ts';

const machines = aggregateOf(computeInstance);
const SETTINGS: ConsoleSettings = { limitMs: 60_000, total: 10, perTenant: 10 };

/** Sessions of instances that share one log: what the log decides, and what each keeps to itself. */
describe('consoles of two instances', () => {
  const folders = temporaryFolders();
  let store: EventStore;
  let ended: AbortController[];
  let directory: string;
  let serial = 0;

  const machineRuns = async (id: string, tenant = 't1'): Promise<void> => {
    const { runner } = instance('workflows');
    const at = systemClock().now();
    const facts = { at, id, tenant, project: '', name: id, creator: 'ann' };
    const place = { hub: 'h1', namespace: 'osac', objectName: id, simulated: false, controller: 'operator' };
    const commands = [
      { type: 'CreateDocument', ...facts, document: { spec: { run_strategy: 'Always' } } },
      { type: 'PlaceOnHub', at, ...place },
      { type: 'RecordObserved', at, observed: { phase: 'Running', conditions: [] } },
    ] as const;
    for (const command of commands) {
      const outcome = await runner.execute(
        machines,
        id,
        command as never,
        fakeContext(`${command.type}-${id}`, { tenant }),
      );
      expect(outcome.outcome, JSON.stringify(outcome)).to.equal('accepted');
    }
  };

  const instance = (
    name: string,
    settings: Partial<ConsoleSettings> = {},
    hub: Partial<ManagementCluster> = HUB,
  ) => {
    const runner = createCommandRunner({
      store,
      codec: createEventCodec(eventTypes),
      clock: systemClock(),
      instance: name,
      recordRejection: () => undefined,
    });
    const ending = new AbortController();
    ended.push(ending);
    const keys = openConsoleKeyFiles({ directory, kek: Buffer.alloc(32, 1), now: () => Date.now() });
    const tickets = keys.then(createTickets);
    const ports = { clock: systemClock(), timers: systemTimers(), ids: systemIds() };
    const consoles = tickets.then((made) =>
      createConsoles({
        ...ports,
        runner,
        store,
        instance: name,
        tickets: made,
        adapterOf: () => hub as ManagementCluster,
        personal: { source: async () => undefined },
        logger: recordingLogger(),
        settings: { ...SETTINGS, ...settings },
        ending: ending.signal,
      }),
    );
    const ticket = async (more: Partial<Ticket> = {}): Promise<string> => {
      const asked: Ticket = {
        session: `s${(serial += 1)}`,
        kind: 'computeInstance',
        id: 'vm',
        console: 'serial',
        clientId: 'c1',
        subject: 'ann',
        tokenUntil: new Date(Date.parse(ports.clock.now()) + 3_600_000).toISOString(),
        requestId: 'r',
        actor: { subjectId: 'ann', roles: [], authMethod: 'jwt', via: 'http' },
        ...more,
      };
      return (await (await tickets).issue(asked, ports.clock.now())).ticket;
    };
    const connect = (text: string) => {
      const gone = new AbortController();
      const typed = new PassThrough();
      let said = '';
      const state = { connected: false };
      const end = consoles.then((made) =>
        made.connect(
          text,
          {
            incoming: typed as AsyncIterable<Uint8Array>,
            send: async (data) => void (said += Buffer.from(data).toString()),
            connected: () => void (state.connected = true),
          },
          { via: 'test', requestId: 'r', signal: gone.signal },
        ),
      );
      end.catch(() => undefined);
      const isOpen = () => eventually('it is connected', () => state.connected);
      return { end, typed, gone, isOpen, said: () => said };
    };
    return { runner, ticket, connect, ending, consoles };
  };
  const HUB: Partial<ManagementCluster> = {
    openConsole: async (_kind, { name }) => {
      const stream = serialPrompt({ name, now: () => Date.now() });
      return { ...duplexLine(stream), close: () => stream.destroy() };
    },
  };
  const refusalOf = async (end: Promise<unknown>): Promise<string> => {
    const error = await rejection(end);
    if (!(error instanceof ConsoleRefused)) throw error;
    return error.refusal;
  };
  const told = async (): Promise<string[]> =>
    (await collect(store.readStream('computeInstance-vm'))).flatMap(({ type, data }) =>
      type.includes('Console')
        ? [`${type.slice(22)} ${stringAt(data, 'session')} ${stringAt(data, 'reason')}`]
        : [],
    );

  beforeEach(async () => {
    // As a store that several processes write to.
    store = { ...createMemoryEventStore(), singleWriter: false };
    ended = [];
    serial = 0;
    directory = `${folders.make()}/console`;
    await machineRuns('vm');
  });
  afterEach(async () => {
    for (const ending of ended) ending.abort();
    await store.close();
    folders.clean();
  });

  it('let one of them use a ticket, whoever is faster', async () => {
    const [one, two] = [instance('i1'), instance('i2')];
    const ticket = await one.ticket();
    const both = [one.connect(ticket), two.connect(ticket)];
    const refused = await Promise.any(both.map(({ end }) => refusalOf(end)));
    expect(refused).to.equal('invalid-ticket');
    await eventually('one has it', async () => (await told()).length === 1);
    for (const { gone } of both) gone.abort();
    await Promise.allSettled(both.map(({ end }) => end));
    expect(await told()).to.deep.equal(['Opened s1 ', 'Closed s1 left']);
  });

  it('hand a console over from one to the other', async () => {
    const [one, two] = [instance('i1'), instance('i2')];
    const first = one.connect(await one.ticket());
    await first.isOpen();
    expect(await refusalOf(two.connect(await two.ticket({ clientId: 'c2' })).end)).to.equal('active');
    const second = two.connect(await two.ticket());
    expect(await first.end).to.equal('replaced');
    await second.isOpen();
    second.typed.write('echo over here\r');
    await eventually('it answers', () => second.said().includes('\r\nover here'));
    second.typed.end();
    expect(await second.end).to.equal('left');
    expect(await told()).to.deep.equal(['Opened s1 ', 'Closed s1 replaced', 'Opened s3 ', 'Closed s3 left']);
  });

  it('end with the machine, whoever records it', async () => {
    const one = instance('i1');
    const session = one.connect(await one.ticket());
    await session.isOpen();
    const { runner } = instance('i2');
    const at = systemClock().now();
    await runner.execute(
      machines,
      'vm',
      { type: 'RecordObserved', at, observed: { phase: 'Stopped', conditions: [] } } as never,
      fakeContext('stop', { tenant: 't1' }),
    );
    expect(await session.end).to.equal('stopped');
    expect(await refusalOf(one.connect(await one.ticket()).end)).to.equal('not-running');
  });

  it('record their end once the store is back', async () => {
    let away = false;
    const { append } = store;
    store = {
      ...store,
      append: (...args) =>
        away ? Promise.reject(new StoreUnavailable('the store is away')) : append.apply(store, args),
    };
    const one = instance('i1');
    const session = one.connect(await one.ticket());
    await session.isOpen();
    away = true;
    session.typed.end();
    expect(await session.end).to.equal('left');
    expect(await told()).to.deep.equal(['Opened s1 ']);
    away = false;
    await eventually('it is recorded', async () => (await told()).at(-1) === 'Closed s1 left');
    await (await one.consoles).idle();
  });

  /** How the store answers appends from now on; undefined: as it is. */
  const storeAnswers = () => {
    const { append } = store;
    const answers: { how?: 'away' | 'stored and silent' | 'lost' | undefined } = {};
    store = {
      ...store,
      append: async (...args) => {
        if (answers.how === 'away') throw new StoreUnavailable('the store is away');
        if (answers.how === 'lost') throw new OutcomeUnknown(args[0]);
        const appended = await append.apply(store, args);
        if (answers.how === 'stored and silent') throw new OutcomeUnknown(args[0]);
        return appended;
      },
    };
    return answers;
  };

  for (const how of ['stored and silent', 'lost'] as const)
    it(`settle an end whose append was ${how} by a retry, once`, async () => {
      const answers = storeAnswers();
      const one = instance('i1');
      const session = one.connect(await one.ticket());
      await session.isOpen();
      answers.how = how;
      session.typed.end();
      expect(await session.end).to.equal('left');
      answers.how = undefined;
      await (await one.consoles).idle();
      expect(await told()).to.deep.equal(['Opened s1 ', 'Closed s1 left']);
    });

  it('tell their client of an end that the store does not answer', async () => {
    const { append } = store;
    const never = Promise.withResolvers<void>();
    let silent = false;
    store = {
      ...store,
      append: async (...args) => {
        if (silent) await never.promise;
        return append.apply(store, args);
      },
    };
    const one = instance('i1');
    const session = one.connect(await one.ticket());
    await session.isOpen();
    silent = true;
    session.typed.end();
    expect(await session.end).to.equal('left');
    never.resolve();
    await (await one.consoles).idle();
    expect(await told()).to.deep.equal(['Opened s1 ', 'Closed s1 left']);
  });

  it('leave a console free whose end is only being recorded', async () => {
    const answers = storeAnswers();
    const one = instance('i1');
    const session = one.connect(await one.ticket());
    await session.isOpen();
    answers.how = 'away';
    session.typed.end();
    expect(await session.end).to.equal('left');
    answers.how = undefined;
    const other = one.connect(await one.ticket({ clientId: 'c2' }));
    await other.isOpen();
    expect(await told()).to.deep.equal(['Opened s1 ', 'Closed s1 left', 'Opened s2 ']);
  });

  for (const how of ['stored and silent', 'lost'] as const)
    it(`leave a console free whose opening was ${how}`, async () => {
      const answers = storeAnswers();
      const one = instance('i1');
      answers.how = how;
      expect(await refusalOf(one.connect(await one.ticket()).end)).to.equal('unreachable');
      answers.how = undefined;
      const other = one.connect(await one.ticket({ clientId: 'c2' }));
      await other.isOpen();
      expect(await told()).to.deep.equal(['Opened s1 ', 'Closed s1 unreachable', 'Opened s2 ']);
    });

  it('record their end while the service stops, though the store comes back only then', async () => {
    const answers = storeAnswers();
    const one = instance('i1');
    const session = one.connect(await one.ticket());
    await session.isOpen();
    answers.how = 'away';
    one.ending.abort();
    expect(await session.end).to.equal('shutdown');
    const idle = (await one.consoles).idle();
    answers.how = undefined;
    await idle;
    expect(await told()).to.deep.equal(['Opened s1 ', 'Closed s1 shutdown']);
  });

  it('last as long as the setting says', async () => {
    const one = instance('i1', { limitMs: 50 });
    const session = one.connect(await one.ticket());
    expect(await session.end).to.equal('limit');
    expect(session.typed.destroyed || session.said() !== '').to.equal(true);
    expect((await told()).at(-1)).to.equal('Closed s1 limit');
  });

  it('last as long as the token that asked for the ticket', async () => {
    const one = instance('i1');
    const after = (ms: number): string => new Date(Date.parse(systemClock().now()) + ms).toISOString();
    const tokenUntil = after(200);
    const session = one.connect(await one.ticket({ tokenUntil }));
    await session.isOpen();
    expect(await session.end).to.equal('unauthorized');
    expect(await told()).to.deep.equal(['Opened s1 ', 'Closed s1 unauthorized']);
    const events = await collect(store.readStream('computeInstance-vm'));
    expect(events.find(({ data }) => data['session'] === 's1')?.data).to.include({ until: tokenUntil });
    expect(await refusalOf(one.connect(await one.ticket({ tokenUntil: after(-1) })).end)).to.equal(
      'invalid-ticket',
    );
  });

  it('are so many at one time, of all and of one tenant', async () => {
    await machineRuns('vm-2');
    await machineRuns('vm-3', 't2');
    const one = instance('i1', { total: 2, perTenant: 1 });
    const first = one.connect(await one.ticket());
    await first.isOpen();
    expect(await refusalOf(one.connect(await one.ticket({ id: 'vm-2' })).end)).to.equal('too-many');
    const third = one.connect(await one.ticket({ id: 'vm-3' }));
    await third.isOpen();
    first.gone.abort();
    expect(await first.end).to.equal('left');
    const next = one.connect(await one.ticket({ id: 'vm-2' }));
    await next.isOpen();
    expect((await one.consoles).count()).to.equal(2);
  });

  it('tell a hub that cannot be reached, a line that breaks, and a machine that closes', async () => {
    const away = instance(
      'i1',
      {},
      {
        openConsole: () => Promise.reject(new HubError('unavailable', 'nobody there')),
      },
    );
    expect(await refusalOf(away.connect(await away.ticket()).end)).to.equal('unreachable');
    const lines: PassThrough[] = [];
    const near = instance(
      'i2',
      {},
      {
        openConsole: async () => {
          const stream = new PassThrough();
          lines.push(stream);
          return { ...duplexLine(stream), close: () => stream.destroy() };
        },
      },
    );
    const broken = near.connect(await near.ticket());
    await broken.isOpen();
    lines.at(-1)?.destroy(new Error('cut'));
    expect(await broken.end).to.equal('lost');
    const closing = near.connect(await near.ticket());
    await closing.isOpen();
    lines.at(-1)?.end();
    expect(await closing.end).to.equal('closed');
    expect((await told()).map((line) => line.split(' ').at(-1))).to.deep.equal([
      '',
      'unreachable',
      '',
      'lost',
      '',
      'closed',
    ]);
  });
});
