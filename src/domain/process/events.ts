import type { z } from 'zod';
import type { DomainEvent } from '../decider.ts';
import type { RUN_EVENT_SHAPES } from './event-types.ts';

type Shapes = typeof RUN_EVENT_SHAPES;
type DataOf<Type extends keyof Shapes> = Readonly<
  { at: string } & z.infer<z.ZodObject<Shapes[Type], z.core.$strict>>
>;

/** Events of a run's own stream; the shapes are in event-types.ts. */
export type RunEvent = { [Type in keyof Shapes]: DomainEvent<Type, DataOf<Type>> }[keyof Shapes];

export type RunEventOf<Type extends RunEvent['type']> = Extract<RunEvent, { readonly type: Type }>;
