import type { ActingKind, AnyWorkflow } from '../../../src/domain/acting-kind.ts';
import type { DomainEvent } from '../../../src/domain/decider.ts';
import { because } from '../../../src/domain/sentences.ts';
import { meterOf, type Meter } from '../../../src/domain/metering/meter.ts';

/**
 * A kind that acts and is no cluster: what walks the list of such kinds has to take it by its declaration alone. It is
 * billed for itself, from `ToyMade` to `ToyBroken`.
 */
type ToyState = { readonly id: string; readonly tenant: string; readonly broken: boolean } | undefined;
type ToyEvent =
  | DomainEvent<'ToyMade', { at: string; id: string; tenant: string }>
  | DomainEvent<'ToyBroken', { at: string }>;

const evolve = (state: ToyState, event: ToyEvent): ToyState => {
  if (event.type === 'ToyMade') return { id: event.data.id, tenant: event.data.tenant, broken: false };
  return event.type === 'ToyBroken' && state !== undefined ? { ...state, broken: true } : state;
};

export const toyMeter = (more: { readonly isOurs?: true } = {}): Meter =>
  meterOf<ToyState, ToyEvent>(
    {
      ...more,
      version: 1,
      resourceType: 'toy',
      facts: (state) =>
        state && {
          id: state.id,
          tenant: state.tenant,
          project: '',
          name: 'a toy',
          template: { id: '', name: '' },
          state: state.broken ? 'BROKEN' : 'READY',
          isBillable: !state.broken,
          isDelivered: true,
          isGone: state.broken,
          dimensions: {},
        },
      components: () => [{ component: 'toy', nodeSet: 'toy', hostType: '', nodeCount: 1, dimensions: {} }],
      sameComponents: () => true,
    },
    { initialState: () => undefined, evolve },
  ) as Meter;

export const toyKind: Pick<ActingKind, 'kind' | 'workflow' | 'timeline' | 'stateVersion'> & {
  readonly meter: Meter;
} = {
  kind: 'toy',
  stateVersion: 1,
  workflow: { name: 'toyRun' } as unknown as AnyWorkflow,
  timeline: {
    sentences: { ToyMade: 'A toy was made.', ToyBroken: (data) => `The toy broke${because(data)}.` },
    deeds: { wind: 'wind it up' },
    timers: { nap: 'It has slept enough.' },
  },
  meter: toyMeter(),
};
