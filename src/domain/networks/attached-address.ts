import type { Use } from '../holder.ts';
import type { JsonObject } from '../json.ts';
import { stringAt } from '../json-tools.ts';
import type { PlacedCommand, PlacedState } from '../placed-document.ts';
import { asking, type PlacedRun, type PlacedStep } from '../placed-workflow.ts';
import type { Call } from '../process/declaration.ts';
import { OWN_BACKOFF } from '../process/effects.ts';

/** What becomes of an external IP that something waits for; in `wakes` of whatever uses one. */
export const ADDRESS_NEWS = ['ExternalIPAllocated', 'ExternalIPDetached'];

/** What its last answer says it waits for: an id of a stream, for `wakes`. */
export const awaitedBy = (run: PlacedRun, step: string): string => stringAt(run.done[step]?.result, 'on');

/**
 * Claims what an object is the only user of, an external IP and perhaps more, and waits until the IP has an address, which
 * its answer holds as `address`. They were claimed before the object was made (`ResourceKind.uses`) and are claimed again
 * after an abort that gave them back. They are given back once the object's absence on its hub was observed.
 */
export const attachAddress = <State extends PlacedState>(
  kind: string,
  usesOf: (run: PlacedRun<State>) => readonly Use[],
): PlacedStep<State, PlacedCommand> => {
  const call = (run: PlacedRun<State>, operation: string): Call => ({
    port: 'uses',
    operation,
    lane: 'uses',
    args: { holder: { kind, id: run.id }, uses: usesOf(run).map((use): JsonObject => ({ ...use })) },
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
