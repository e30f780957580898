import type { EventStore, RecordedEvent } from '../log/event-store.ts';
import { foldRecorded, inputsOf, newRun, type Run } from './run.ts';
import type { AnyWorkflow, RunCodec } from './types.ts';

/**
 * A run from its two streams alone. An event of its own comes right behind the one of the subject that it was
 * appended upon, which its metadata name. A person's decision names none: it comes where the log has it.
 */
export const foldRun = async (
  workflow: AnyWorkflow,
  runId: string,
  store: Pick<EventStore, 'readStream'>,
  codec: RunCodec,
): Promise<Run> => {
  const run = newRun(workflow, runId);
  // Before the subject's: everything that these were appended upon is there by then.
  const own: RecordedEvent[] = [];
  for await (const event of store.readStream(run.key)) own.push(event);
  let next = 0;
  const foldOwn = (isNext: (event: RecordedEvent) => boolean): void => {
    for (let event = own[next]; event !== undefined && isNext(event); event = own[next]) {
      foldRecorded(run, event, codec);
      next += 1;
    }
  };
  for await (const event of store.readStream(run.subject)) {
    foldOwn((mine) => {
      const inputs = inputsOf(mine, run.subject);
      return inputs === undefined ? mine.position < event.position : inputs < event.revision;
    });
    foldRecorded(run, event, codec);
  }
  foldOwn(() => true);
  return run;
};
