import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createErasures } from '../../../src/app/audit/erasure.ts';
import { startUpkeep } from '../../../src/composition/upkeep.ts';
import type { TestService } from './service.ts';
import { recordingLogger } from '../loggers.ts';

/**
 * What the service makes of its own at every start: built-in roles, default projects. Answers the lines that it logged;
 * reads show what it made.
 */
export const makeBuiltIns = async ({
  runner,
  commands,
  models,
  people,
}: TestService): Promise<readonly { readonly level: string; readonly fields: object }[]> => {
  const stop = new AbortController();
  const logger = recordingLogger();
  const running = startUpkeep(
    {
      runner,
      commands,
      erasures: createErasures({ runner, keys: people, clock: systemClock(), logger }),
      resources: models.resources,
      clock: systemClock(),
      timers: systemTimers(),
      logger,
      applied: (position) => models.waitFor('resources', position, { timeoutMs: 5_000 }),
    },
    stop.signal,
  );
  await running.first;
  stop.abort();
  await running.ended;
  return logger.lines;
};
