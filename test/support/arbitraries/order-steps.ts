import fc from 'fast-check';

/** One move of the world around a cluster order: callers, the hub, the clock, faults. */
export type OrderMove =
  | { readonly move: 'scale'; readonly size: number }
  | { readonly move: 'delete' | 'cancel' | 'retry' | 'write-status' }
  /** Carries out the first pending command; `lost`: its answer is, so that it is carried out again. */
  | { readonly move: 'command'; readonly lost: boolean }
  | {
      readonly move: 'effect';
      readonly pick: number;
      /** What happens on the far side, and what we are told. */
      readonly fate:
        | 'done'
        | 'failed'
        | 'refused'
        | 'unknown-done'
        | 'unknown-not'
        | 'crash-done'
        | 'crash-not';
    }
  /** The newest look at the hub, or one from earlier. */
  | { readonly move: 'observe'; readonly stale: boolean }
  | { readonly move: 'timer'; readonly pick: number }
  /** An answer that was given before comes once more. */
  | { readonly move: 'duplicate'; readonly pick: number }
  /** The hub goes on: from nothing to a control plane, nodes, and, when deleting, to absence. */
  | { readonly move: 'progress' }
  | { readonly move: 'vanish' };

const pick = fc.nat({ max: 7 });

export const orderMoves = (): fc.Arbitrary<OrderMove[]> =>
  fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ move: fc.constant('command' as const), lost: fc.boolean() }) },
      {
        weight: 5,
        arbitrary: fc.record({
          move: fc.constant('effect' as const),
          pick,
          fate: fc.constantFrom(
            'done' as const,
            'done' as const,
            'done' as const,
            'failed' as const,
            'refused' as const,
            'unknown-done' as const,
            'unknown-not' as const,
            'crash-done' as const,
            'crash-not' as const,
          ),
        }),
      },
      { weight: 3, arbitrary: fc.record({ move: fc.constant('observe' as const), stale: fc.boolean() }) },
      { weight: 3, arbitrary: fc.record({ move: fc.constant('progress' as const) }) },
      {
        weight: 1,
        arbitrary: fc.record({ move: fc.constant('scale' as const), size: fc.integer({ min: 1, max: 5 }) }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          move: fc.constantFrom(
            'delete' as const,
            'cancel' as const,
            'retry' as const,
            'write-status' as const,
          ),
        }),
      },
      { weight: 1, arbitrary: fc.record({ move: fc.constant('timer' as const), pick }) },
      { weight: 1, arbitrary: fc.record({ move: fc.constant('duplicate' as const), pick }) },
      { weight: 1, arbitrary: fc.record({ move: fc.constant('vanish' as const) }) },
    ),
    { maxLength: 60 },
  );
