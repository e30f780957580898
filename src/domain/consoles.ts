import { z } from 'zod';
import {
  isRejection,
  reject,
  type Decider,
  type Decision,
  type DomainEvent,
  type Rejection,
} from './decider.ts';
import type { JsonObject } from './json.ts';
import { stringAt } from './json-tools.ts';
import { count, text, time, type EventData, type EventOf, type Shapes } from './schemas.ts';

/**
 * Consoles of a machine: who looks at it, in the machine's own stream. The log decides whether a ticket was used and who has
 * a console, so that both hold over several instances and a restart. Nothing that is typed or shown is recorded.
 */
export const CONSOLE_TYPES = ['serial', 'vnc'] as const;
export type ConsoleType = (typeof CONSOLE_TYPES)[number];

/** Why a session ended, as its client is told. */
export const CONSOLE_ENDS = {
  left: 'the client left',
  closed: 'the machine closed its console',
  lost: 'the connection to the machine was lost',
  unreachable: 'failed to connect to console backend',
  replaced: 'the same client connected again',
  limit: 'the time limit of a console session was reached',
  unauthorized: 'the token that asked for the ticket has expired',
  stopped: 'the machine does not run any more',
  deleted: 'the machine is being deleted',
  shutdown: 'the service is stopping: connect again',
  interrupted: 'the service was interrupted',
} as const;
export type ConsoleEnd = keyof typeof CONSOLE_ENDS;
export const isConsoleEnd = (end: string): end is ConsoleEnd => Object.hasOwn(CONSOLE_ENDS, end);

const session = { session: text, console: z.enum(CONSOLE_TYPES) };
const SHAPES = {
  /** `session`: the id of its ticket, which opens no other. `until`: when it ends at the latest. */
  Opened: { ...session, clientId: text, subjectId: text, ticketUntil: time, until: time, instance: text },
  Closed: { ...session, seconds: count, reason: text },
} as const satisfies Shapes;
type Opened = EventData<(typeof SHAPES)['Opened']>;
type Closed = EventData<(typeof SHAPES)['Closed']>;

/** Shapes of the events of a kind whose words begin with `prefix`. */
export const consoleShapes = <P extends string>(prefix: P) =>
  ({
    [`${prefix}ConsoleOpened`]: SHAPES.Opened,
    [`${prefix}ConsoleClosed`]: SHAPES.Closed,
  }) as { [W in keyof typeof SHAPES as `${P}Console${W}`]: (typeof SHAPES)[W] };
export type ConsoleEvent<P extends string> = EventOf<ReturnType<typeof consoleShapes<P>>>;

/** Type of the event by which a session of this kind ends, whatever ends it. */
export const consoleClosedOf = (prefix: string): string => `${prefix}ConsoleClosed`;

export type OpenConsole = { readonly type: 'OpenConsole' } & Opened & {
    /** No other instance can be running: a session of another one was cut off. */
    readonly alone: boolean;
  };
export type CloseConsole = {
  readonly type: 'CloseConsole';
  readonly at: string;
  readonly session: string;
  readonly reason: ConsoleEnd;
};
export type ConsoleCommand = OpenConsole | CloseConsole;

type UsedTicket = { readonly session: string; readonly until: string };
export type Consoles = {
  readonly consoles?: { readonly open: readonly Opened[]; readonly used: readonly UsedTicket[] };
};

/** Clocks of instances may differ by so much: a used ticket is remembered so much longer than it is good. */
const CLOCKS_MS = 5 * 60_000;

const CUT_OFF_MS = 60_000;

const NONE = { open: [], used: [] } as const;
const consolesOf = ({ consoles = NONE }: Consoles) => consoles;
const later = (time: string, ms: number): number => Date.parse(time) + ms;

const evolved = (before: Consoles, word: string, data: Opened | Closed): Consoles['consoles'] => {
  const { open, used } = consolesOf(before);
  const others = open.filter((one) => one.session !== data.session);
  if (word === 'Closed') return { open: others, used };
  const opened = data as Opened;
  const still = used.filter(({ until }) => later(until, CLOCKS_MS) > Date.parse(data.at));
  return {
    open: [...others, opened],
    used: [...still, { session: opened.session, until: opened.ticketUntil }],
  };
};

/** Why a machine gives no new console. Those that are open go on while it is only to be stopped. */
export type WithoutConsole = Extract<ConsoleEnd, 'stopped' | 'deleted'> | 'stopping';

/** After its limit a session that nobody closed was cut off: its instance, whose clock may be behind, is over. */
export const cutOffSessions = (
  state: Consoles,
): readonly { readonly session: string; readonly at: string }[] =>
  consolesOf(state).open.map(({ session: id, until }) => ({
    session: id,
    at: new Date(later(until, CUT_OFF_MS)).toISOString(),
  }));

type Rules<State> = {
  /** `ComputeInstance`. */
  readonly prefix: string;
  readonly words: string;
  readonly without: (state: State) => WithoutConsole | undefined;
};

/** A machine's decider, and its consoles: they end with what makes the machine one without. */
export const withConsoles = <
  State extends Consoles,
  Command extends { readonly type: string },
  Event extends DomainEvent,
>(
  own: Decider<State, Command, Event>,
  { prefix, words, without }: Rules<State>,
): Decider<State, Command | ConsoleCommand, Event> => {
  const made = (word: keyof typeof SHAPES, data: Opened | Closed): Event =>
    ({ type: `${prefix}Console${word}`, data }) as unknown as Event;
  const closed = ({ session: id, console: type, at: since }: Opened, at: string, reason: ConsoleEnd): Event =>
    made('Closed', {
      at,
      session: id,
      console: type,
      seconds: Math.max(0, Math.floor((Date.parse(at) - Date.parse(since)) / 1000)),
      reason,
    });

  const opening = (state: State, { type: _type, alone, ...wanted }: OpenConsole): Decision<Event> => {
    const { open, used } = consolesOf(state);
    const { at } = wanted;
    const why = without(state);
    if (why !== undefined)
      return refuse(why === 'deleted' ? 'GONE' : 'NOT_RUNNING', `the ${words} has no console now`);
    if ([...used, ...open].some((one) => one.session === wanted.session))
      return refuse('TICKET_USED', 'invalid ticket: it was used before');
    const former = open.find((one) => one.console === wanted.console);
    if (former === undefined) return [made('Opened', wanted)];
    const isCutOff = (alone && former.instance !== wanted.instance) || former.until <= at;
    const isSame = former.subjectId === wanted.subjectId && former.clientId === wanted.clientId;
    if (!isSame && !isCutOff) return refuse('CONSOLE_ACTIVE', 'console session already active');
    return [closed(former, at, isCutOff ? 'interrupted' : 'replaced'), made('Opened', wanted)];
  };

  const evolve: Decider<State, Command, Event>['evolve'] = (state, event) => {
    const next = own.evolve(state, event);
    const [, word] = event.type.split(`${prefix}Console`);
    return word === undefined || !Object.hasOwn(SHAPES, word)
      ? next
      : { ...next, consoles: evolved(state, word, event.data as Opened | Closed) };
  };

  return {
    initialState: own.initialState,
    evolve,
    decide: (state, command) => {
      if (isConsoleCommand(command)) {
        if (command.type === 'OpenConsole') return opening(state, command);
        const former = consolesOf(state).open.find((one) => one.session === command.session);
        return former === undefined ? [] : [closed(former, command.at, command.reason)];
      }
      const decision = own.decide(state, command);
      const { open } = consolesOf(state);
      if (open.length === 0 || isRejection(decision) || decision.length === 0) return decision;
      const why = without(decision.reduce(evolve, state));
      const at = stringAt(decision[0]?.data as JsonObject, 'at');
      return why === undefined || why === 'stopping'
        ? decision
        : [...decision, ...open.map((one) => closed(one, at, why))];
    },
  };
};

const isConsoleCommand = (command: { readonly type: string }): command is ConsoleCommand =>
  command.type === 'OpenConsole' || command.type === 'CloseConsole';

const refuse = (code: string, message: string): Rejection => reject('failed-precondition', code, message);

/** What the timeline says of them. */
export const consoleSentences = (prefix: string): Readonly<Record<string, (data: JsonObject) => string>> => ({
  [`${prefix}ConsoleOpened`]: (data) => `Its ${stringAt(data, 'console')} console was opened.`,
  [`${prefix}ConsoleClosed`]: (data) => {
    const reason = stringAt(data, 'reason');
    const why = isConsoleEnd(reason) ? CONSOLE_ENDS[reason] : reason;
    return `Its ${stringAt(data, 'console')} console was closed after ${Number(data['seconds'])} s: ${why}.`;
  },
});
