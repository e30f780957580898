import { expect } from 'chai';
import fc from 'fast-check';
import {
  withConsoles,
  type ConsoleCommand,
  type ConsoleEvent,
  type Consoles,
  type ConsoleType,
  type OpenConsole,
} from '../../../../src/domain/consoles.ts';
import { isRejection, type Decider, type DomainEvent } from '../../../../src/domain/decider.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { check } from '../../../support/property.ts';

type Power = 'on' | 'ending' | 'off' | 'gone';
type Switched = DomainEvent<'MachineSwitched', { readonly at: string; readonly power: Power }>;
type MachineEvent = Switched | ConsoleEvent<'Machine'>;
type MachineState = Consoles & { readonly power: Power };
type Switch = { readonly type: 'Switch'; readonly at: string; readonly power: Power };

const own: Decider<MachineState, Switch, MachineEvent> = {
  initialState: () => ({ power: 'on' }),
  evolve: (state, event) =>
    event.type === 'MachineSwitched' ? { ...state, power: event.data.power } : state,
  decide: ({ power }, command) =>
    command.power === power
      ? []
      : [{ type: 'MachineSwitched', data: { at: command.at, power: command.power } }],
};
const machine = withConsoles(own, {
  prefix: 'Machine',
  words: 'machine',
  without: ({ power }) =>
    (({ on: undefined, ending: 'stopping', off: 'stopped', gone: 'deleted' }) as const)[power],
});

const START = Date.parse('2026-11-23T09:00:00.000Z');
const at = (seconds: number): string => new Date(START + seconds * 1000).toISOString();

const facts = (session: string, seconds: number, more: Partial<OpenConsole> = {}) => ({
  at: at(seconds),
  session,
  console: 'serial' as ConsoleType,
  clientId: 'c1',
  subjectId: 'ann',
  ticketUntil: at(seconds + 30),
  until: at(seconds + 1_800),
  instance: 'i1',
  ...more,
});
const open = (session: string, seconds: number, more: Partial<OpenConsole> = {}): OpenConsole => ({
  type: 'OpenConsole',
  alone: false,
  ...facts(session, seconds, more),
});
const opened = (session: string, seconds: number, more: Partial<OpenConsole> = {}): MachineEvent => ({
  type: 'MachineConsoleOpened',
  data: facts(session, seconds, more),
});
const closed = (session: string, seconds: number, lasted: number, reason: string): MachineEvent => ({
  type: 'MachineConsoleClosed',
  data: { at: at(seconds), session, console: 'serial', seconds: lasted, reason },
});

describe('consoles of a machine', () => {
  const { given } = specify<MachineState, Switch | ConsoleCommand, MachineEvent>(machine);

  it('open by a ticket once, whatever became of the session', () => {
    given().when(open('s1', 0)).thenEvents(opened('s1', 0));
    given(opened('s1', 0)).when(open('s1', 1)).thenRejected('TICKET_USED');
    const past = [opened('s1', 0), closed('s1', 5, 5, 'left')];
    given(...past)
      .when(open('s1', 20))
      .thenRejected('TICKET_USED');
    // Minutes later, too: clocks of instances may differ.
    given(...past, opened('s2', 200), closed('s2', 201, 1, 'left'))
      .when(open('s1', 210))
      .thenRejected('TICKET_USED');
  });
  it('never open by the ticket of a session that goes on', () =>
    given(opened('s1', 0), opened('s2', 600, { console: 'vnc' }), closed('s2', 601, 1, 'left'))
      .when(open('s1', 700, { console: 'vnc' }))
      .thenRejected('TICKET_USED'));
  it('remember a ticket only while it could be good', () => {
    const state = given(opened('s1', 0), closed('s1', 5, 5, 'left'), opened('s2', 600)).state();
    expect(state.consoles?.used.map(({ session }) => session)).to.deep.equal(['s2']);
  });
  it('belong to one client each; the same client of the same person takes over', () => {
    const others: Partial<OpenConsole>[] = [{ clientId: 'c2' }, { subjectId: 'bob' }];
    for (const other of others)
      given(opened('s1', 0))
        .when(open('s2', 7, other))
        .thenRejected('CONSOLE_ACTIVE');
    given(opened('s1', 0))
      .when(open('s2', 7))
      .thenEvents(closed('s1', 7, 7, 'replaced'), opened('s2', 7));
    given(opened('s1', 0))
      .when(open('s2', 7, { console: 'vnc', subjectId: 'bob' }))
      .thenEvents(opened('s2', 7, { console: 'vnc', subjectId: 'bob' }));
  });
  it('are taken from a session that was cut off: past its limit, or of a process that is over', () => {
    const bob = { subjectId: 'bob', instance: 'i2' };
    given(opened('s1', 0))
      .when(open('s2', 1_799, bob))
      .thenRejected('CONSOLE_ACTIVE');
    given(opened('s1', 0))
      .when(open('s2', 1_800, bob))
      .thenEvents(closed('s1', 1_800, 1_800, 'interrupted'), opened('s2', 1_800, bob));
    given(opened('s1', 0))
      .when(open('s2', 9, { ...bob, alone: true }))
      .thenEvents(closed('s1', 9, 9, 'interrupted'), opened('s2', 9, bob));
    given(opened('s1', 0))
      .when(open('s2', 9, { subjectId: 'bob', alone: true }))
      .thenRejected('CONSOLE_ACTIVE');
  });
  it('end once, with their length', () => {
    const close = { type: 'CloseConsole', at: at(62.9), session: 's1', reason: 'left' } as const;
    given(opened('s1', 0))
      .when(close)
      .thenEvents({
        type: 'MachineConsoleClosed',
        data: { at: at(62.9), session: 's1', console: 'serial', seconds: 62, reason: 'left' },
      });
    given(opened('s1', 0), closed('s1', 5, 5, 'replaced'))
      .when(close)
      .thenNothing();
    given().when(close).thenNothing();
    // A clock that was put back makes no negative length.
    given(opened('s1', 100))
      .when(close)
      .thenEvents({
        type: 'MachineConsoleClosed',
        data: { at: at(62.9), session: 's1', console: 'serial', seconds: 0, reason: 'left' },
      });
  });
  it('end with the machine that stops or goes, in the same append; there are none without it', () => {
    given(opened('s1', 0))
      .when({ type: 'Switch', at: at(5), power: 'off' })
      .thenEvents(
        { type: 'MachineSwitched', data: { at: at(5), power: 'off' } },
        closed('s1', 5, 5, 'stopped'),
      );
    const off: MachineEvent = { type: 'MachineSwitched', data: { at: at(0), power: 'off' } };
    const gone: MachineEvent = { type: 'MachineSwitched', data: { at: at(0), power: 'gone' } };
    given(off).when(open('s1', 1)).thenRejected('NOT_RUNNING');
    given(gone).when(open('s1', 1)).thenRejected('GONE');
    given(off)
      .when({ type: 'Switch', at: at(5), power: 'off' })
      .thenNothing();
  });

  it('go on while the machine is being stopped, when none is opened any more', () => {
    const ending: MachineEvent = { type: 'MachineSwitched', data: { at: at(5), power: 'ending' } };
    given(opened('s1', 0))
      .when({ type: 'Switch', at: at(5), power: 'ending' })
      .thenEvents(ending);
    given(opened('s1', 0), ending).when(open('s2', 6)).thenRejected('NOT_RUNNING');
    given(opened('s1', 0), ending)
      .when({ type: 'Switch', at: at(9), power: 'off' })
      .thenEvents(
        { type: 'MachineSwitched', data: { at: at(9), power: 'off' } },
        closed('s1', 9, 9, 'stopped'),
      );
  });

  it('over any history: each ticket opens one session, each session ends once, and one is open of a type', () => {
    const step = fc.record({
      wait: fc.nat(900),
      deed: fc.oneof(
        fc.record({
          what: fc.constant('open' as const),
          ticket: fc.nat(5),
          console: fc.constantFrom<ConsoleType>('serial', 'vnc'),
          subject: fc.constantFrom('ann', 'bob'),
          instance: fc.constantFrom('i1', 'i2'),
        }),
        fc.record({ what: fc.constant('close' as const), ticket: fc.nat(5) }),
        fc.record({
          what: fc.constant('switch' as const),
          power: fc.constantFrom<Power>('on', 'ending', 'off'),
        }),
      ),
    });
    check(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let state = machine.initialState();
        let seconds = 0;
        const times = new Map<string, number>();
        const running = new Map<string, string>();
        for (const { wait, deed } of steps) {
          seconds += wait;
          const command: Switch | ConsoleCommand =
            deed.what === 'open'
              ? open(`s${deed.ticket}`, seconds, {
                  console: deed.console,
                  subjectId: deed.subject,
                  instance: deed.instance,
                  // A ticket has one end; late ones are refused before they come here.
                  ticketUntil: at(seconds + 30),
                })
              : deed.what === 'close'
                ? { type: 'CloseConsole', at: at(seconds), session: `s${deed.ticket}`, reason: 'left' }
                : { type: 'Switch', at: at(seconds), power: deed.power };
          const decision = machine.decide(state, command);
          if (isRejection(decision)) continue;
          for (const event of decision) {
            state = machine.evolve(state, event);
            if (event.type === 'MachineSwitched') continue;
            const { session, console } = event.data;
            if (event.type === 'MachineConsoleClosed') {
              expect(running.get(console)).to.equal(session);
              running.delete(console);
              continue;
            }
            expect(running.has(console)).to.equal(false);
            running.set(console, session);
            const last = times.get(session);
            // Long after its time its id is forgotten: the signature alone refuses it then.
            if (last !== undefined) expect(seconds - last).to.be.above(300);
            times.set(session, seconds);
          }
          expect(state.consoles?.open.length ?? 0).to.equal(running.size);
          if (state.power === 'off') expect(running.size).to.equal(0);
        }
      }),
    );
  });
});
