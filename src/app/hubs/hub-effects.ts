import { own } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import type { HubRegistry, RegisteredHub } from './hub-registry.ts';
import {
  HubError,
  isForbidden,
  type CallOptions,
  type HubErrorKind,
  type ManagementCluster,
} from './management-cluster.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';

/** What the effect ports that work with a hub have in common. */

/** Reason of an effect that was not sent because another service drives the hub (hub-marks.ts). */
export const DRIVEN_ELSEWHERE = 'HubDrivenElsewhere';

/** An outcome that ends the effect from deep inside; `outcomeOf` makes it the effect's own. */
export class Ended extends Error {
  override readonly name = 'Ended';
  readonly outcome: EffectOutcome;
  constructor(outcome: EffectOutcome) {
    super(outcome.outcome);
    this.outcome = outcome;
  }
}

export const done = (result: { readonly [key: string]: unknown }): EffectOutcome => ({
  outcome: 'done',
  result: result as JsonObject,
});
export const failed = (reason: string, message: string, retryAfterMs?: number): EffectOutcome => ({
  outcome: 'failed',
  reason,
  message,
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});
export const refused = (reason: string, message: string): EffectOutcome => ({
  outcome: 'refused',
  reason,
  message,
});

/** Arguments are this service's own, made by its workflow and typed there. */
type Operations = {
  readonly [operation: string]: (args: never, call: EffectCall) => Promise<EffectOutcome>;
};

/** `told`: what an error of an operation says of how it ended; undefined: nothing, it is a bug. */
export const effectPort =
  (
    operations: Operations,
    told: (error: unknown, call: EffectCall) => EffectOutcome | undefined,
  ): EffectPort =>
  async (operation, args, call) => {
    const run = own(operations, operation);
    try {
      return run === undefined
        ? refused('NoSuchOperation', `no operation is called ${operation}`)
        : await run(args as never, call);
    } catch (error) {
      const outcome = told(error, call);
      if (outcome === undefined) throw error;
      return outcome;
    }
  };

/** How an effect calls a hub: for at most `deadlineMs`, and never longer than the effect itself may take. */
export const callOptionsOf = (call: EffectCall, deadlineMs: number): CallOptions => ({
  effectId: call.effectId,
  deadlineMs: Math.min(deadlineMs, call.deadlineMs),
  signal: call.signal,
});

/** Throws Ended when it is not registered. */
export const registeredHub = async (
  registry: Pick<HubRegistry, 'ready' | 'get'>,
  id: string,
  call: EffectCall,
): Promise<RegisteredHub> => {
  await registry.ready(call.signal);
  const hub = registry.get(id);
  // A hub that was deregistered may come back; its orders wait.
  if (hub === undefined) throw new Ended(failed('HubNotRegistered', `hub ${id} is not registered`));
  return hub;
};

/** Throws Ended when nothing reaches it. */
export const clusterOf = ({ adapter, facts }: RegisteredHub): ManagementCluster => {
  if (adapter !== undefined) return adapter;
  throw new Ended(failed('NoAdapter', `nothing in this release reaches hub ${facts.id}`));
};

/** What an error of an effect says of how it ended; undefined: nothing, it is a bug. */
export const outcomeOf = (error: unknown): EffectOutcome | undefined => {
  if (error instanceof Ended) return error.outcome;
  return error instanceof HubError ? outcomeOfHubError(error) : undefined;
};

/** An API server repeats what it refuses; a pull secret must not come back that way. */
const withoutSecret = (message: string): string =>
  message.replaceAll(/(pullSecret: Invalid value: )"(?:[^"\\]|\\.)*"/g, '$1"***"');

export const outcomeOfHubError = (error: HubError): EffectOutcome => {
  const { retryAfterMs } = error;
  const message = withoutSecret(error.message);
  const isDenied: boolean = isForbidden(error);
  switch (error.kind) {
    case 'invalid':
      return refused('ValidationFailed', message);
    case 'already-exists':
      return refused('NameTaken', message);
    case 'unknown-outcome':
      return { outcome: 'unknown', reason: 'OutcomeUnknown', message };
    default:
      // What is denied may be denied to this order alone; credentials that are not known are good for none.
      return failed(isDenied ? 'Forbidden' : REASONS[error.kind], message, retryAfterMs);
  }
};

const REASONS: {
  readonly [Kind in Exclude<HubErrorKind, 'invalid' | 'already-exists' | 'unknown-outcome'>]: string;
} = {
  conflict: 'Conflict',
  'not-found': 'NotFound',
  'not-ready': 'NotReady',
  unauthorized: 'Unauthorized',
  'driven-elsewhere': DRIVEN_ELSEWHERE,
  'other-cluster': 'DifferentCluster',
  throttled: 'Throttled',
  unavailable: 'Unavailable',
};
