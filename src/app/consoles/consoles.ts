import type { ActingKind, MachineConsoles } from '../../domain/acting-kind.ts';
import { actingKinds } from '../../domain/acting-kinds.ts';
import {
  CONSOLE_ENDS,
  consoleClosedOf,
  isConsoleEnd,
  type ConsoleCommand,
  type ConsoleEnd,
} from '../../domain/consoles.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { defined, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import type { CommandRunner } from '../commands/command.ts';
import { HubError, type CallOptions, type ManagementCluster } from '../hubs/management-cluster.ts';
import { OutcomeUnknown, type EventStore, type Position } from '../log/event-store.ts';
import type { CommandContext } from '../log/metadata.ts';
import type { Runtime } from '../ports.ts';
import type { PersonalMetadata } from '../tenancy/subjects.ts';
import { createClosings } from './closings.ts';
import {
  ConsoleRefused,
  type ConnectConsole,
  type ConsoleCall,
  type ConsoleLine,
  type ConsoleRefusal,
  type ConsoleTransport,
  type MachineConsole,
} from './console-line.ts';
import type { RedeemedTicket, Tickets } from './tickets.ts';

/** Milliseconds that a hub may take to open a console, or to say that the machine is there. */
const HUB_DEADLINE_MS = 10_000;

export type ConsoleSettings = {
  /** Milliseconds that one session may last. */
  readonly limitMs: number;
  /** Sessions of this instance at one time. */
  readonly total: number;
  /** Of these, sessions on the machines of one tenant. */
  readonly perTenant: number;
};

export type ConsoleServices = {
  readonly runner: Pick<CommandRunner, 'execute' | 'load'>;
  readonly adapterOf: (hub: string) => ManagementCluster | undefined;
  readonly tickets: Tickets;
  readonly store: Pick<EventStore, 'subscribe' | 'singleWriter'>;
  readonly personal: Pick<PersonalMetadata, 'source'>;
  readonly settings: ConsoleSettings;
  /** The service is stopping. */
  readonly ending: AbortSignal;
} & Pick<Runtime, 'clock' | 'timers' | 'ids' | 'instance' | 'logger'>;

export type Machine = {
  readonly kind: ActingKind;
  readonly consoles: MachineConsoles<unknown>;
  readonly id: string;
};

export type Consoles = {
  readonly connect: ConnectConsole;
  /** Asks the hub for the machine's object. Throws ConsoleRefused `unreachable`. */
  readonly reach: (machine: Machine, state: unknown, signal: AbortSignal) => Promise<void>;
  readonly count: () => number;
  /** Resolves when the last session is recorded as closed. */
  readonly idle: () => Promise<void>;
};

/** The kind whose machines are of this type of OSAC's; undefined: none has consoles. */
export const consoleKindOf = (
  is: (kind: ActingKind, consoles: MachineConsoles<unknown>) => boolean,
): Omit<Machine, 'id'> | undefined => {
  for (const kind of actingKinds)
    if (kind.consoles !== undefined && is(kind, kind.consoles)) return { kind, consoles: kind.consoles };
  return undefined;
};

type Session = { readonly end: (why: ConsoleEnd) => void };

/**
 * Consoles of machines, for every protocol: a ticket is redeemed by an append to the machine's stream, which decides
 * whether it was used and who has the console. Whatever closes a session in the log, here or on another instance, ends it.
 */
export const createConsoles = (services: ConsoleServices): Consoles => {
  const { runner, tickets, store, clock, timers, ids, instance, settings, ending } = services;
  const logger = services.logger.child({ component: 'consoles' });
  const sessions = new Map<string, Session>();
  const seats = createSeats(settings);
  /** From before a session is in the log until its end is, so that a stop waits for both. */
  const underWay = new Set<Promise<unknown>>();
  const track = <T>(work: Promise<T>): Promise<T> => {
    const settled: Promise<unknown> = Promise.allSettled([work]).then(() => underWay.delete(settled));
    underWay.add(settled);
    return work;
  };

  const aggregateFor = ({ kind }: Machine) => aggregateOf(kind);

  const execute = async (machine: Machine, command: ConsoleCommand, context: CommandContext) =>
    runner.execute(aggregateFor(machine), machine.id, command, context);

  /** Closings that this instance did not decide, from `after` on, for as long as it has sessions. */
  const follow = async (after: Position | undefined, signal: AbortSignal): Promise<void> => {
    const typePrefixes = actingKinds.flatMap(({ consoles, message }) =>
      consoles === undefined ? [] : [consoleClosedOf(message)],
    );
    const where = { name: 'consoles', filter: { typePrefixes }, signal, ...defined({ after }) };
    for await (const item of store.subscribe(where)) {
      if (item.kind !== 'event') continue;
      endAs(item.event.data);
    }
  };

  const endAs = (data: JsonObject): void => {
    const reason = stringAt(data, 'reason');
    if (isConsoleEnd(reason)) sessions.get(stringAt(data, 'session'))?.end(reason);
  };

  let following: AbortController | undefined;
  const followFrom = (position: Position | undefined): void => {
    if (following !== undefined) return;
    const mine = new AbortController();
    following = mine;
    follow(position, mine.signal).catch((error: unknown) => {
      if (mine.signal.aborted) return;
      logger.error({ err: error }, 'consoles closed: the event log cannot be followed');
      if (following === mine) following = undefined;
      for (const { end } of sessions.values()) end('interrupted');
    });
  };
  const forget = (session: string): void => {
    sessions.delete(session);
    if (sessions.size > 0) return;
    following?.abort();
    following = undefined;
  };

  const contextOf = async (
    ticket: RedeemedTicket,
    where: { readonly tenant: string; readonly project: string },
    call: ConsoleCall,
  ): Promise<CommandContext> => {
    const commandId = ids.uuidv7();
    const actor = { ...ticket.actor, via: call.via };
    const { remoteAddress: ip, userAgent } = call;
    const source = await services.personal.source(actor.subjectId, defined({ ip, userAgent }));
    return {
      ...where,
      actor,
      commandId,
      requestHash: commandId,
      correlationId: ticket.requestId,
      causationId: commandId,
      ...defined({ source }),
    };
  };

  const closings = createClosings({ clock, timers, limitMs: settings.limitMs, ending, track });

  /** Appends the closing, however the session ended. `settled`: what has to be known before, throws while it is not. */
  const recordClosed = (
    machine: Machine,
    { session }: RedeemedTicket,
    reason: ConsoleEnd,
    context: CommandContext,
    settled: () => Promise<unknown> = async () => undefined,
  ): Promise<void> => {
    const command = { type: 'CloseConsole', at: clock.now(), session, reason } as const;
    const commandId = ids.uuidv7();
    const append = (): Promise<boolean> =>
      settled()
        .then(() => execute(machine, command, { ...context, commandId }))
        .then(
          () => true,
          (error: unknown) => {
            logger.warn({ err: error, session, reason }, 'end of a console session not recorded');
            return false;
          },
        );
    return closings.record({ machine: machine.id, append });
  };

  const redeem = async (
    machine: Machine,
    ticket: RedeemedTicket,
    context: CommandContext,
  ): Promise<{ state: unknown; position: Position | undefined }> => {
    const at = clock.now();
    const { session, console, clientId, subject: subjectId, until: ticketUntil } = ticket;
    const limit = new Date(Date.parse(at) + settings.limitMs).toISOString();
    const until = limit < ticket.tokenUntil ? limit : ticket.tokenUntil;
    const facts = { at, session, console, clientId, subjectId, ticketUntil, until, instance };
    const opening = { type: 'OpenConsole', ...facts, alone: store.singleWriter } as const;
    const outcome = await execute(machine, opening, context).catch((error: unknown) => {
      // Repeated until it is known, and closed: else nobody has a console that is taken in the log.
      if (error instanceof OutcomeUnknown)
        void recordClosed(machine, ticket, 'unreachable', context, () => execute(machine, opening, context));
      throw new ConsoleRefused('unreachable', 'the event log does not answer: try again', { cause: error });
    });
    if (outcome.outcome === 'rejected') {
      const { code, message } = outcome.rejection;
      throw new ConsoleRefused(REFUSALS[code] ?? 'not-running', message);
    }
    for (const event of outcome.events as readonly DomainEvent<string, JsonObject>[]) endAs(event.data);
    return { state: outcome.loaded.state, position: outcome.loaded.position };
  };

  const open = async (
    machine: Machine,
    state: unknown,
    console: RedeemedTicket['console'],
    by: CallOptions,
  ): Promise<MachineConsole> => {
    const { adapter, place } = standsAt(machine, state);
    if (adapter.openConsole === undefined) throw unreachable();
    try {
      return await adapter.openConsole(machine.consoles.object, place, console, by);
    } catch (error) {
      if (error instanceof HubError) throw unreachable(error);
      throw error;
    }
  };

  const standsAt = ({ consoles }: Machine, state: unknown) => {
    const place = consoles.place(state);
    const adapter = place && services.adapterOf(place.hub);
    if (place === undefined || adapter === undefined) throw unreachable();
    return { place, adapter };
  };

  const connect: ConnectConsole = async (text, transport, call) => {
    const ticket = await tickets.verify(text, clock.now());
    const found = consoleKindOf(({ kind }) => kind === ticket.kind);
    if (found === undefined) throw new ConsoleRefused('invalid-ticket', 'invalid ticket: unknown machine');
    const machine = { ...found, id: ticket.id };
    if (ending.aborted) throw new ConsoleRefused('unreachable', CONSOLE_ENDS.shutdown);
    if (ticket.tokenUntil <= clock.now())
      throw new ConsoleRefused('invalid-ticket', `invalid ticket: ${CONSOLE_ENDS.unauthorized}`);
    const view = machine.kind.view((await runner.load(aggregateFor(machine), machine.id)).state);
    if (!view.exists) throw new ConsoleRefused('invalid-ticket', 'invalid ticket: unknown machine');
    const leave = seats.take(view.tenant);
    try {
      const context = await contextOf(ticket, view, call);
      await closings.settle(machine.id);
      const { state, position } = await redeem(machine, ticket, context);
      const ended = Promise.withResolvers<ConsoleEnd>();
      sessions.set(ticket.session, { end: ended.resolve });
      followFrom(position);
      let reason: ConsoleEnd = 'unreachable';
      try {
        reason = await carry(machine, state, ticket, { transport, call, ended });
        return reason;
      } finally {
        await recordClosed(machine, ticket, reason, context);
        forget(ticket.session);
      }
    } finally {
      leave();
    }
  };

  /** From the open line to the first reason to end. Throws ConsoleRefused when the line cannot be had. */
  const carry = async (
    machine: Machine,
    state: unknown,
    ticket: RedeemedTicket,
    {
      transport,
      call,
      ended,
    }: {
      readonly transport: ConsoleTransport;
      readonly call: ConsoleCall;
      readonly ended: PromiseWithResolvers<ConsoleEnd>;
    },
  ): Promise<ConsoleEnd> => {
    const over = new AbortController();
    const onShutdown = (): void => ended.resolve('shutdown');
    const onGone = (): void => ended.resolve('left');
    ending.addEventListener('abort', onShutdown);
    call.signal.addEventListener('abort', onGone);
    if (ending.aborted) onShutdown();
    if (call.signal.aborted) onGone();
    const cancels = [
      timers.after(settings.limitMs, () => ended.resolve('limit')),
      timers.after(Date.parse(ticket.tokenUntil) - Date.parse(clock.now()), () =>
        ended.resolve('unauthorized'),
      ),
    ];
    let line: MachineConsole | undefined;
    try {
      const by = { effectId: `console:${ticket.session}`, deadlineMs: HUB_DEADLINE_MS, signal: over.signal };
      const opening = open(machine, state, ticket.console, by);
      opening.catch(() => undefined);
      const first = await Promise.race([opening, ended.promise]);
      if (typeof first === 'string') {
        opening.then(({ close }) => close()).catch(() => undefined);
        return first;
      }
      line = first;
      transport.connected();
      void pump(transport, line, { source: 'left', sink: 'lost' }).then(ended.resolve);
      void pump(line, transport, { source: 'closed', broken: 'lost', sink: 'left' }).then(ended.resolve);
      return await ended.promise;
    } finally {
      for (const cancel of cancels) cancel();
      ending.removeEventListener('abort', onShutdown);
      call.signal.removeEventListener('abort', onGone);
      over.abort();
      line?.close();
    }
  };

  return {
    connect: (text, transport, call) => track(connect(text, transport, call)),
    reach: async (machine, state, signal) => {
      const { adapter, place } = standsAt(machine, state);
      const by = { effectId: `console:${machine.id}`, deadlineMs: HUB_DEADLINE_MS, signal };
      const object = await adapter.get(machine.consoles.object, place, by).catch((error: unknown) => {
        if (error instanceof HubError) throw unreachable(error);
        throw error;
      });
      if (object === undefined) throw unreachable();
    },
    count: () => sessions.size,
    idle: async () => {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
};

const REFUSALS: { readonly [code: string]: ConsoleRefusal } = {
  TICKET_USED: 'invalid-ticket',
  CONSOLE_ACTIVE: 'active',
  NOT_RUNNING: 'not-running',
  GONE: 'not-running',
};

const unreachable = (cause?: HubError): ConsoleRefused =>
  new ConsoleRefused('unreachable', CONSOLE_ENDS.unreachable, { cause });

/** One piece at a time, so that a reader that stops holds back whoever writes. Resolves with why it ended. */
const pump = async (
  from: ConsoleLine,
  to: ConsoleLine,
  why: { readonly source: ConsoleEnd; readonly broken?: ConsoleEnd; readonly sink: ConsoleEnd },
): Promise<ConsoleEnd> => {
  try {
    for await (const piece of from.incoming) {
      try {
        await to.send(piece);
      } catch {
        return why.sink;
      }
    }
    return why.source;
  } catch {
    return why.broken ?? why.source;
  }
};

/** How many sessions there may be at one time, of all and of one tenant. */
const createSeats = ({ total, perTenant }: Pick<ConsoleSettings, 'total' | 'perTenant'>) => {
  const taken = new Map<string, number>();
  let all = 0;
  return {
    /** Gives back what leaves the seat. Throws ConsoleRefused `too-many`. */
    take: (tenant: string): (() => void) => {
      const of = taken.get(tenant) ?? 0;
      if (all >= total)
        throw new ConsoleRefused('too-many', 'this instance serves as many consoles as it can');
      if (of >= perTenant)
        throw new ConsoleRefused('too-many', `this tenant has ${perTenant} consoles open already: close one`);
      all += 1;
      taken.set(tenant, of + 1);
      return () => {
        all -= 1;
        const left = (taken.get(tenant) ?? 1) - 1;
        if (left === 0) taken.delete(tenant);
        else taken.set(tenant, left);
      };
    },
  };
};
