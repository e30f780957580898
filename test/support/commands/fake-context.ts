import { createCommandRunner, type CommandRunnerOptions } from '../../../src/app/commands/command-runner.ts';
import type { CommandContext } from '../../../src/app/commands/command.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { Clock, RejectionRecord } from '../../../src/app/ports.ts';
import { accountCodec } from './fake-account.ts';

/** A clock that stands still unless it is moved. */
export const createFakeClock = (
  start = '2026-11-21T10:00:00.000Z',
): Clock & { advance(ms: number): void } => {
  let wall = Date.parse(start);
  let monotonic = 0;
  return {
    now: () => new Date(wall).toISOString(),
    monotonicMs: () => monotonic,
    advance: (ms) => {
      wall += ms;
      monotonic += ms;
    },
  };
};

export const fakeContext = (commandId: string, more: Partial<CommandContext> = {}): CommandContext => ({
  tenant: 'acme',
  project: '',
  actor: { subjectId: 'subject-1', roles: ['client'], authMethod: 'jwt', via: 'http' },
  commandId,
  requestHash: `hash of ${commandId}`,
  correlationId: commandId,
  causationId: commandId,
  ...more,
});

/** A command runner on the given store, with what it recorded. */
export const createTestRunner = (store: EventStore, more: Partial<CommandRunnerOptions> = {}) => {
  const rejections: RejectionRecord[] = [];
  const clock = createFakeClock();
  const runner = createCommandRunner({
    store,
    codec: accountCodec,
    clock,
    instance: 'test-1',
    recordRejection: (record) => rejections.push(record),
    ...more,
  });
  return { runner, rejections, clock };
};

export const collect = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
};
