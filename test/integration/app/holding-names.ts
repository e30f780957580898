import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { nameAggregate } from '../../../src/domain/kinds.ts';
import { nameStreamId } from '../../../src/app/names/names.ts';
import { fakeContext, collect } from '../../support/commands/fake-context.ts';
import { createGadget, gadget } from '../../support/commands/fake-gadget.ts';
import { createIncarnation } from '../../support/commands/fake-incarnation.ts';

export type Incarnation = ReturnType<typeof createIncarnation>;

export const create = (
  on: Incarnation,
  id: string,
  name: string,
  codes: readonly string[] = [],
  command = id,
) => on.resources.execute(gadget, id, createGadget(id, name, codes), fakeContext(`create ${command}`));

export const holderOf = async (on: Incarnation, name: string): Promise<string | undefined> => {
  const { state } = await on.runner.load(nameAggregate, nameStreamId('gadget', 'acme', '', name));
  return state.status === 'held' ? state.holder : undefined;
};
export const codeHolderOf = async (on: Incarnation, code: string): Promise<string | undefined> => {
  const { state } = await on.runner.load(nameAggregate, nameStreamId('gadget.code', '', '', code));
  return state.status === 'held' ? state.holder : undefined;
};

export const types = async (store: EventStore): Promise<string[]> =>
  (await collect(store.readAll({ limit: 1000 }))).map((event) => event.type);

export const shared = () => createMemoryEventStore({ singleWriter: false });
