import { SiteError, type Marked, type OwnerMark } from '../../../../app/site/ports.ts';
import { sameJson } from '../../../../domain/json-tools.ts';
import type { SiteLife } from '../settings.ts';
import { ownerText, type Item, type NewItem, type SiteFile, type Sort } from '../site-file.ts';

/** What an operation has at hand. `now`: time of the site. */
export type Act = {
  readonly file: SiteFile;
  readonly zone: string;
  readonly now: number;
  readonly effectId: string;
  readonly owner: OwnerMark;
  readonly life: SiteLife;
};

/** `text` goes into the journal. */
export type Result = { readonly value?: unknown; readonly text: string };

export type Operation<Args = never> = {
  readonly write: boolean;
  /** What a call is about, for the journal. */
  readonly object: (args: Args) => string;
  /** Operation that takes away what this one makes. */
  readonly undoneBy?: string;
  readonly run: (args: Args, act: Act) => Result;
};

export const operation = <Args>(one: Operation<Args>): Operation => one as unknown as Operation;

export const conflict = (message: string): SiteError => new SiteError('conflict', message);
export const refusal = (message: string): SiteError => new SiteError('refused', message);

export const sameMark = (left: OwnerMark, right: OwnerMark): boolean =>
  left.order === right.order && left.generation === right.generation;

export const whose = ({ owner }: Pick<Item, 'owner'>): string => `order ${owner.order} (${ownerText(owner)})`;

/** Makes it, or finds that it is there as wanted. `called`: for people. */
export const make = (
  act: Act,
  called: string,
  wanted: Omit<NewItem, 'owner' | 'effectId' | 'createdAt'>,
): Result => {
  const { file, now, owner, effectId } = act;
  const there = file.itemAt(wanted.sort, wanted.name, now);
  if (there === undefined) {
    file.addItem({ ...wanted, owner, effectId, createdAt: now });
    return { text: 'created' };
  }
  if (!sameMark(there.owner, owner)) throw conflict(`${called} belongs to ${whose(there)}`);
  if (there.goneAt !== undefined)
    throw new SiteError('unavailable', `${called} is being taken away`, there.goneAt - now);
  if (!sameJson(there.spec, wanted.spec))
    throw conflict(`${called} is there for the same owner, and otherwise`);
  return { text: 'unchanged' };
};

/** Begins to take it away, where it is this owner's. */
export const takeAway = (act: Act, sort: Sort, name: string, ms: number): Result => {
  const there = act.file.itemAt(sort, name, act.now);
  if (there === undefined) return { text: 'absent' };
  if (!sameMark(there.owner, act.owner)) return { text: 'absent' };
  if (there.goneAt === undefined) act.file.endItem(there, act.now + ms);
  return { text: 'removed' };
};

/** Those that work, and those of which something is left: of one order, or of everybody. */
export const shown = <Spec>(
  { file, now }: Pick<Act, 'file' | 'now'>,
  sort: Sort,
  order: string | undefined,
): Marked<Spec>[] =>
  file
    .itemsOf<Spec>(sort, order, now)
    .filter(({ readyAt, goneAt }) => readyAt <= now || goneAt !== undefined)
    .map(({ owner, spec }) => ({ owner, spec }));

export type Of = { readonly order?: string };
export const EVERYBODY = 'everybody';
