import { reject, type DataOf, type Decider, type Decision, type Rejection } from '../decider.ts';
import { fnv1a32 } from '../hash.ts';
import { own } from '../json-tools.ts';
import type { HoldScope, RetentionEvent } from './events.ts';

/**
 * Legal holds and erasures: a hold beats an erasure, and both are decided in one
 * stream, so that a hold is either placed before an erasure begins, or is told that it comes too late.
 */
export const RETENTION_CATEGORY = 'retention';
/** There is one of it. */
export const RETENTION_ID = 'deployment';

export type Erasure = Omit<DataOf<RetentionEvent, 'ErasureBegun'>, 'at'>;

/** Tenants whose history an erasure changes: the key that it destroys is one for all of them. */
export const tenantsOf = ({
  tenant,
  tenants = [],
}: Pick<Erasure, 'tenant' | 'tenants'>): readonly string[] => [...new Set([tenant, ...tenants])];

export type Hold = Omit<DataOf<RetentionEvent, 'LegalHoldPlaced'>, 'at'> & { readonly placedAt: string };

export type RetentionCommand =
  | ({ readonly type: 'PlaceLegalHold' } & DataOf<RetentionEvent, 'LegalHoldPlaced'>)
  | ({ readonly type: 'ReleaseLegalHold' } & Omit<DataOf<RetentionEvent, 'LegalHoldReleased'>, 'scope'>)
  | ({
      readonly type: 'BeginErasure';
      /** Whether the subject has a key: false means that nothing was stored of them since the last one was destroyed. */
      readonly hasKey: boolean;
    } & DataOf<RetentionEvent, 'ErasureBegun'>)
  /** The key is gone. */
  | { readonly type: 'CompleteErasure'; readonly at: string; readonly erasureId: string };

export type RetentionState = {
  /** Holds that stand. */
  readonly holds: readonly Hold[];
  /** Erasures that have begun and whose key may still be there. */
  readonly pending: readonly Erasure[];
  /**
   * The id of the last erasure of each subject whose key was destroyed, by bucket and subject: nobody is ever left
   * out again,
   * and a change copies only one bucket.
   */
  readonly erased: { readonly [bucket: string]: { readonly [subjectId: string]: string } };
};

/** The erasure that has left nothing of a subject to destroy; undefined where there was none. */
export const erasureOf = ({ erased }: RetentionState, subjectId: string): string | undefined =>
  own(erased[bucketOf(subjectId)], subjectId);

const BUCKETS = 256;
const bucketOf = (subjectId: string): string => `b${fnv1a32(subjectId) % BUCKETS}`;

const withErased = (
  erased: RetentionState['erased'],
  { subjectId, erasureId }: Pick<Erasure, 'subjectId' | 'erasureId'>,
): RetentionState['erased'] => {
  const bucket = bucketOf(subjectId);
  return { ...erased, [bucket]: { ...erased[bucket], [subjectId]: erasureId } };
};

export const retentionDecider: Decider<RetentionState, RetentionCommand, RetentionEvent> = {
  initialState: () => ({ holds: [], pending: [], erased: {} }),
  evolve: (state, event) => {
    switch (event.type) {
      case 'LegalHoldPlaced': {
        const { at, ...hold } = event.data;
        return { ...state, holds: [...state.holds, { ...hold, placedAt: at }] };
      }
      case 'LegalHoldReleased':
        return { ...state, holds: state.holds.filter(({ holdId }) => holdId !== event.data.holdId) };
      case 'ErasureBegun': {
        const { at: _at, ...erasure } = event.data;
        return { ...state, pending: [...state.pending, erasure] };
      }
      case 'SubjectKeyDestroyed': {
        const { erasureId } = event.data;
        return {
          ...state,
          pending: state.pending.filter((each) => each.erasureId !== erasureId),
          erased: withErased(state.erased, event.data),
        };
      }
      default:
        return state;
    }
  },
  decide: (state, command) => {
    switch (command.type) {
      case 'PlaceLegalHold':
        return place(state, command);
      case 'ReleaseLegalHold':
        return release(state, command);
      case 'BeginErasure':
        return begin(state, command);
      case 'CompleteErasure':
        return complete(state, command);
    }
  },
};

type Command<Type extends RetentionCommand['type']> = Extract<RetentionCommand, { type: Type }>;

const place = (
  { holds, pending }: RetentionState,
  { type: _type, ...hold }: Command<'PlaceLegalHold'>,
): Decision<RetentionEvent> => {
  if (holds.some(({ holdId }) => holdId === hold.holdId)) return [];
  const late = pending.find((erasure) => covers(hold.scope, erasure));
  if (late !== undefined)
    return reject(
      'failed-precondition',
      'ERASURE_UNDER_WAY',
      `the data of subject '${late.subjectId}' is being erased (erasure '${late.erasureId}'): a hold cannot keep it any more`,
      { field: 'scope', facts: { erasure: late.erasureId } },
    );
  return [{ type: 'LegalHoldPlaced', data: hold }];
};

const release = (
  { holds }: RetentionState,
  { at, holdId, reason }: Command<'ReleaseLegalHold'>,
): Decision<RetentionEvent> => {
  const hold = holds.find((each) => each.holdId === holdId);
  return hold === undefined
    ? noSuchHold(holdId)
    : [{ type: 'LegalHoldReleased', data: { at, holdId, scope: hold.scope, reason } }];
};

const noSuchHold = (holdId: string): Rejection =>
  reject('not-found', 'HOLD_NOT_FOUND', `no legal hold '${holdId}' stands`);

const begin = (
  state: RetentionState,
  { type: _type, hasKey, ...erasure }: Command<'BeginErasure'>,
): Decision<RetentionEvent> => {
  const { holds, pending } = state;
  const known = pending.find(({ subjectId }) => subjectId === erasure.subjectId);
  if (known?.erasureId === erasure.erasureId) return [];
  if (known !== undefined)
    return reject(
      'failed-precondition',
      'ERASURE_UNDER_WAY',
      `the data of subject '${erasure.subjectId}' is being erased already (erasure '${known.erasureId}')`,
      { facts: { erasure: known.erasureId } },
    );
  // What was done once cannot be done again; a key that came later, of somebody who came back, can be destroyed.
  if (!hasKey && erasureOf(state, erasure.subjectId) !== undefined) return [];
  const hold = holds.find(({ scope }) => covers(scope, erasure));
  if (hold !== undefined)
    return reject(
      'failed-precondition',
      'LEGAL_HOLD',
      `legal hold '${hold.holdId}' keeps the data of subject '${erasure.subjectId}': release it first`,
      { facts: { hold: hold.holdId } },
    );
  return [{ type: 'ErasureBegun', data: erasure }];
};

const complete = (
  { pending }: RetentionState,
  { at, erasureId }: Command<'CompleteErasure'>,
): Decision<RetentionEvent> => {
  const erasure = pending.find((each) => each.erasureId === erasureId);
  return erasure === undefined ? [] : [{ type: 'SubjectKeyDestroyed', data: { ...erasure, at } }];
};

const covers = (scope: HoldScope, erasure: Pick<Erasure, 'subjectId' | 'tenant' | 'tenants'>): boolean => {
  if (scope.kind === 'all') return true;
  return scope.kind === 'subject' ? scope.id === erasure.subjectId : tenantsOf(erasure).includes(scope.id);
};
