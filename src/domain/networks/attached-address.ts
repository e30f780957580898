import type { JsonObject } from '../json.ts';
import { stringAt } from '../json-tools.ts';
import type { PlacedCommand, PlacedState } from '../placed-document.ts';
import type { ResourceKind } from '../resource.ts';
import { asking, documentOf, type PlacedRun, type PlacedStep } from '../placed-run.ts';
import type { Call } from '../process/declaration.ts';
import { OWN_BACKOFF } from '../process/effects.ts';

/** What becomes of an external IP that something waits for; in `wakes` of whatever uses one. */
export const ADDRESS_NEWS = ['ExternalIPAllocated', 'ExternalIPDetached'];

/** What its last answer says it waits for: an id of a stream, for `wakes`. */
export const awaitedBy = (run: PlacedRun, step: string): string => stringAt(run.done[step]?.result, 'on');

/**
 * Claims what an object takes, an external IP and perhaps more, and waits until the IP has an address, which
 * its answer holds as `address`. They were claimed before the object was made (`ResourceKind.takes`) and are claimed again
 * after an abort that gave them back. They are given back once the object's absence on its hub was observed.
 */
export const attachAddress = <State extends PlacedState>({
  kind,
  takes,
}: Pick<ResourceKind, 'kind' | 'takes'>): PlacedStep<State, PlacedCommand> => {
  const call = (run: PlacedRun<State>, operation: string): Call => ({
    port: 'takings',
    operation,
    lane: 'takings',
    args: {
      holder: { kind, id: run.id },
      takes: (takes?.(documentOf(run)) ?? []).map((each): JsonObject => ({ ...each })),
    },
  });
  return asking<State, PlacedCommand>('attach', (run) => call(run, 'attach'), {
    undo: {
      call: (run) => call(run, 'detach'),
      look: (run) => call(run, 'look'),
      absent: (_run, answer) => answer['held'] === false,
      rules: { backoff: OWN_BACKOFF },
    },
  });
};
