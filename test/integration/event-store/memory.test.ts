import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { describeEventStoreContract } from './contract.ts';

describeEventStoreContract('memory', async () => {
  const store = createMemoryEventStore();
  return { store, dispose: () => store.close() };
});
