import { defined } from './json-tools.ts';
import { regularNames } from './resource.ts';
import { type EventData, type Shapes, text } from './schemas.ts';
import type { Holder } from './holder.ts';
import { z } from 'zod';

/** Commands to an object that serves one user at a time (`Use`). */
export type UseCommand =
  | { readonly type: 'AttachTo'; readonly at: string; readonly holder: Holder; readonly part?: string }
  | { readonly type: 'DetachFrom'; readonly at: string; readonly holder: Holder };

/** What the events of such a claim hold besides their time. */
export const USE = {
  holder: z.strictObject({ kind: text, id: text }),
  part: text.exactOptional(),
} as const satisfies Shapes[string];
export type UseData = EventData<typeof USE>;

export const useData = ({ at, holder, ...rest }: UseCommand): UseData =>
  defined({ at, holder: { kind: holder.kind, id: holder.id }, part: 'part' in rest ? rest.part : undefined });

export const isHeldBy = (user: Holder | undefined, { kind, id }: Holder): boolean =>
  user?.kind === kind && user.id === id;

/** As people are told of it: `NAT gateway 'x'`. */
export const userText = ({ kind, id }: Holder): string => {
  const words = regularNames(kind).words.replaceAll(/\b(ip|nat)\b/g, (word) => word.toUpperCase());
  return `${words} '${id}'`;
};
