import { randomBytes } from 'node:crypto';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { appendContract } from './contract/append.ts';
import type { Contract, Fault, StoreFactory, StoreUnderTest } from './contract/fixture.ts';
import { faultContract, lifecycleContract } from './contract/lifecycle.ts';
import { readContract } from './contract/read.ts';
import { subscribeContract } from './contract/subscribe.ts';

export type { Fault, StoreFactory, StoreUnderTest } from './contract/fixture.ts';

/**
 * What every adapter of the event store port keeps. `factory` is called before each test; the store it returns
 * is disposed after it. `parts`: default all. `faults` names those that the fixture offers; their tests run, the others do not exist.
 */
export const describeEventStoreContract = (
  name: string,
  factory: StoreFactory,
  faults: readonly Fault[] = [],
  parts: readonly ((contract: Contract) => void)[] = [appendContract, readContract, subscribeContract],
): void => {
  describe(`event store contract: ${name}`, function () {
    this.timeout(30_000);
    let current: StoreUnderTest | undefined;
    let unique = '';
    const underTest = (): StoreUnderTest => {
      if (current === undefined) throw new Error('no store is open outside a test');
      return current;
    };
    beforeEach(async () => {
      unique = randomBytes(6).toString('hex');
      const made = await factory();
      const reopen = made.reopen;
      let store: EventStore = made.store;
      current = {
        ...made,
        get store() {
          return store;
        },
        ...(reopen && {
          reopen: async () => {
            store = await reopen();
            return store;
          },
        }),
      };
    });
    afterEach(async () => {
      await current?.dispose();
      current = undefined;
    });

    const contract: Contract = {
      underTest,
      store: () => underTest().store,
      prefix: (category = 'test') => `${category}${unique}`,
      stream: (id, category = 'test') => `${category}${unique}-${id}`,
      type: (typeName) => `T${unique}${typeName}`,
    };
    for (const part of parts) part(contract);
    lifecycleContract(contract);
    if (faults.length > 0) describe('faults', () => faultContract(contract, faults));
  });
};
