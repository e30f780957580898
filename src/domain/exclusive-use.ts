import { z } from 'zod';
import type { Holder } from './holder.ts';
import { regularNames, type ResourceKind } from './resource.ts';
import { count, text, type EventData, type Shapes } from './schemas.ts';

/** Of an object that lends itself to one user at a time, as an external IP does (`ResourceKind.lends`). */
export type UseCommand =
  /** `anew`: also where the holder has it, so that a release of the former claim frees nothing. */
  | {
      readonly type: 'AttachTo';
      readonly at: string;
      readonly holder: Holder;
      readonly anew: boolean;
      readonly part?: string;
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
  claim: (at, holder, { part }, anew) => ({
    ...{ type: 'AttachTo', at, holder, anew },
    ...(typeof part === 'string' ? { part } : {}),
  }),
  release: (at, holder, generation) => ({ type: 'DetachFrom', at, holder, generation }),
};

/** As people are told of it: `NAT gateway 'x'`. */
export const userText = ({ kind, id }: Holder): string => {
  const words = regularNames(kind).words.replaceAll(/\b(ip|nat)\b/g, (word) => word.toUpperCase());
  return `${words} '${id}'`;
};
