import { reject, type Decider, type DomainEvent } from '../../../../../src/domain/decider.ts';

/** A shed is built of three parts in a yard; it is open once they stand. */
export const PARTS = ['base', 'walls', 'roof'] as const;
export type Part = (typeof PARTS)[number];

export type Shed = {
  readonly status: 'none' | 'ordered' | 'open' | 'ending' | 'gone';
  readonly id: string;
  readonly built: { readonly [part: string]: true };
  readonly seen: readonly string[];
  readonly late: { readonly [step: string]: string };
  readonly problemAt: string;
  /** It says itself that its building is to be undone. */
  readonly stopped?: true;
};

export type ShedEvent =
  | DomainEvent<'ShedOrdered', { readonly at: string; readonly id: string }>
  | DomainEvent<'PartBuilt' | 'PartRemoved', { readonly at: string; readonly part: string }>
  | DomainEvent<'YardSeen', { readonly at: string; readonly parts: readonly string[] }>
  | DomainEvent<'ShedLate', { readonly at: string; readonly step: string; readonly since: string }>
  | DomainEvent<'ProblemReported', { readonly at: string; readonly reason: string }>
  | DomainEvent<
      'ShedOpened' | 'ShedStopped' | 'RetryRequested' | 'HaltLifted' | 'DeletionRequested' | 'ShedGone',
      { readonly at: string }
    >;

export const SHED_EVENTS: readonly ShedEvent['type'][] = [
  'ShedOrdered',
  'PartBuilt',
  'PartRemoved',
  'YardSeen',
  'ShedLate',
  'ProblemReported',
  'ShedOpened',
  'ShedStopped',
  'RetryRequested',
  'HaltLifted',
  'DeletionRequested',
  'ShedGone',
];

export type ShedCommand =
  | { readonly type: 'Order'; readonly at: string; readonly id: string }
  | { readonly type: 'NotePart' | 'NoteRemoval'; readonly at: string; readonly part: string }
  | { readonly type: 'NoteYard'; readonly at: string; readonly parts: readonly string[] }
  | { readonly type: 'ReportLate'; readonly at: string; readonly step: string; readonly since: string }
  | { readonly type: 'ReportProblem'; readonly at: string; readonly reason: string }
  | {
      readonly type: 'Open' | 'Stop' | 'Retry' | 'LiftHalt' | 'Delete' | 'ConfirmGone';
      readonly at: string;
    };

export const shedDecider: Decider<Shed, ShedCommand, ShedEvent> = {
  initialState: () => ({ status: 'none', id: '', built: {}, seen: [], late: {}, problemAt: '' }),
  evolve: (shed, { type, data }) => {
    switch (type) {
      case 'ShedOrdered':
        return { ...shed, status: 'ordered', id: data.id };
      case 'PartBuilt':
        return { ...shed, built: { ...shed.built, [data.part]: true } };
      case 'PartRemoved': {
        const { [data.part]: _removed, ...built } = shed.built;
        return { ...shed, built };
      }
      case 'YardSeen':
        return { ...shed, seen: data.parts };
      case 'ShedLate':
        return { ...shed, late: { ...shed.late, [data.step]: data.since } };
      case 'ProblemReported':
        return { ...shed, problemAt: data.at };
      case 'ShedStopped':
        return { ...shed, stopped: true };
      case 'RetryRequested': {
        const { stopped: _stopped, ...begun } = shed;
        return begun;
      }
      case 'ShedOpened':
        return { ...shed, status: 'open' };
      case 'DeletionRequested':
        return { ...shed, status: 'ending' };
      case 'ShedGone':
        return { ...shed, status: 'gone' };
      default:
        return shed;
    }
  },
  decide: (shed, command) => {
    const { at } = command;
    if (command.type === 'Order') {
      return shed.status === 'none' ? [{ type: 'ShedOrdered', data: { at, id: command.id } }] : [];
    }
    if (shed.status === 'none') return reject('not-found', 'NO_SHED', 'shed not found');
    if (shed.status === 'gone') return reject('failed-precondition', 'GONE', 'the shed is gone');
    const ending = shed.status === 'ending';
    switch (command.type) {
      case 'NotePart':
        if (ending) return reject('failed-precondition', 'ENDING', 'the shed is being removed');
        return command.part in shed.built ? [] : [{ type: 'PartBuilt', data: { at, part: command.part } }];
      case 'NoteRemoval':
        return command.part in shed.built ? [{ type: 'PartRemoved', data: { at, part: command.part } }] : [];
      case 'NoteYard':
        return command.parts.join() === shed.seen.join()
          ? []
          : [{ type: 'YardSeen', data: { at, parts: command.parts } }];
      case 'ReportLate':
        return shed.late[command.step] === command.since
          ? []
          : [{ type: 'ShedLate', data: { at, step: command.step, since: command.since } }];
      case 'ReportProblem':
        return shed.problemAt >= at
          ? []
          : [{ type: 'ProblemReported', data: { at, reason: command.reason } }];
      case 'Open':
        if (ending) return reject('failed-precondition', 'ENDING', 'the shed is being removed');
        return shed.status === 'open' ? [] : [{ type: 'ShedOpened', data: { at } }];
      case 'Stop':
        return shed.stopped === true ? [] : [{ type: 'ShedStopped', data: { at } }];
      case 'Retry':
        return ending ? [] : [{ type: 'RetryRequested', data: { at } }];
      case 'LiftHalt':
        return [{ type: 'HaltLifted', data: { at } }];
      case 'Delete':
        return ending ? [] : [{ type: 'DeletionRequested', data: { at } }];
      case 'ConfirmGone':
        return ending
          ? [{ type: 'ShedGone', data: { at } }]
          : reject('failed-precondition', 'NOT_ENDING', 'nobody asked for its removal');
    }
  },
};
