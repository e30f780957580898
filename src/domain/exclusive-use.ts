import { z } from 'zod';
import type { Holder } from './holder.ts';
import { reject, type Rejection } from './decider.ts';
import { defined } from './json-tools.ts';
import { regularNames, type ResourceKind } from './resource.ts';
import { count, mayBe, text, type EventData, type Shapes } from './schemas.ts';

/** Of an object that lends itself to one user at a time, as an external IP does (`ResourceKind.lends`). */
export type UseCommand =
  /** `by`: see `ResourceKind.lends`. */
  | {
      readonly type: 'AttachTo';
      readonly at: string;
      readonly holder: Holder;
      readonly by?: string;
      readonly part?: string;
      /** Of the external IP that it is attached with, once that has one. */
      readonly address?: string;
    }
  | {
      readonly type: 'DetachFrom';
      readonly at: string;
      readonly holder: Holder;
      readonly generation: number;
    };

/** What the events of such a claim hold besides their time. */
export const USE = {
  holder: z.strictObject({ kind: text, id: text }),
  generation: count,
  by: mayBe,
} as const satisfies Shapes[string];
export type UseData = EventData<typeof USE>;
/** Who has it, as which of its claims. */
export type User = Omit<UseData, 'at'>;

export const isHeldBy = (user: User | undefined, { kind, id }: Holder): user is User =>
  user?.holder.kind === kind && user.holder.id === id;

export const lendsItself: Pick<
  NonNullable<ResourceKind<unknown, UseCommand>['lends']>,
  'claim' | 'release'
> = {
  claim: (at, holder, { part, address }, by) => ({
    type: 'AttachTo',
    at,
    holder,
    ...defined({ by }),
    ...(typeof part === 'string' ? { part } : {}),
    ...(typeof address === 'string' ? { address } : {}),
  }),
  release: (at, holder, generation) => ({ type: 'DetachFrom', at, holder, generation }),
};

/** Two requests chose one id: the one that came first is to have what it claimed. */
export const creationUnderWay = ({ id }: Holder): Rejection =>
  reject(
    'already-exists',
    'CREATION_UNDER_WAY',
    `another request is about to create '${id}': choose another 'id' or try again later`,
    { field: 'id' },
  );

/** As people are told of it: `NAT gateway 'x'`. */
export const userText = ({ kind, id }: Holder): string => {
  const words = regularNames(kind).words.replaceAll(/\b(ip|nat)\b/g, (word) => word.toUpperCase());
  return `${words} '${id}'`;
};
