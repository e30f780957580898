import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ApiError, type ApiClient } from '../../../src/cli/api-client.ts';
import { FAILPOINTS, type FailpointName } from '../../../src/app/process-runner/types.ts';
import { assertCarriedOutOnce, createLoad, difference, unrecordedEffects, type Load } from './load.ts';
import { readLog } from './stored-log.ts';
import {
  AS_DEPLOYED,
  CLUSTERS,
  createStack,
  until,
  type ClusterBody,
  type Stack,
  type StoreKind,
} from './stack.ts';
import { createRandom } from '../event-store/faulty-store.ts';
import { assertNoSecondObject, checkHubFile, readHubCalls } from '../hubs/hub-journal.ts';

/** How a life of the service ends: at a failpoint, or from outside after so many answers. */
type Death = { readonly failpoint?: `${FailpointName}:${number}`; readonly afterAnswers: number };

/**
 * What a killed process owned on a store with other writers is taken over when its lease has run out (15 s, a fifth more
 * for the way), and what its hubs did meanwhile is seen at the next timed read (10 s). Embedded there is no lease.
 */
const SETTLED_MS: Readonly<Record<StoreKind, number>> = { sqlite: 30_000, 'eventstoredb-peer': 90_000 };
const KILLS = Number(process.env['LEDGER_TEST_KILLS'] ?? 3);
/** What signs and publishes beside it takes a sixth of each start: it is there with the larger number. */
const ROLES = process.env['LEDGER_TEST_KILLS'] === undefined ? {} : AS_DEPLOYED;
const SEED = Number(process.env['LEDGER_TEST_SEED'] ?? Date.now() % 1_000_000);
/** Calls of a hub that change something there. */
const WRITES = ['created', 'patched', 'deletion-requested'];
const VIEWS = ['resources', 'timeline', 'usage'];

/** Every second one from outside, the others at each failpoint in turn. */
const deaths = (kills: number, seed: number): readonly Death[] => {
  const random = createRandom(seed);
  return Array.from({ length: kills }, (_, n): Death => {
    const afterAnswers = 25 + Math.floor(random() * 25);
    if (n % 2 === 0) return { afterAnswers };
    const name = FAILPOINTS[(seed + (n - 1) / 2) % FAILPOINTS.length] ?? 'before-command';
    return { failpoint: `${name}:${1 + Math.floor(random() * 8)}`, afterAnswers: 100 };
  });
};

/** One suite per store in a file of its own, so that they can run beside each other. */
export const killSuite = (store: StoreKind): void => {
  const kills = store === 'sqlite' ? KILLS : Math.ceil(KILLS / 3);
  describe(`kill -9, ${kills} times (${store}, seed ${SEED})`, function () {
    this.timeout(SETTLED_MS[store] + 60_000 + kills * 20_000);
    let stack: Stack;
    let load: Load;
    let alice: ApiClient;

    before(async () => {
      stack = await createStack(store, ROLES);
      await stack.start();
      const token = await stack.token({ tenant: 'acme', user: 'alice' });
      load = createLoad(stack, token, { seed: SEED, clients: 6 });
    });
    after(() => stack.dispose());

    const hubFiles = (): string[] =>
      readdirSync(join(stack.dataDir, 'hubs'))
        .filter((file) => file.endsWith('.sqlite'))
        .map((file) => join(stack.dataDir, 'hubs', file));
    const instance = (): string => {
      const line = stack.service().log.find((text) => text.includes('"msg":"listening"')) ?? '{}';
      return (JSON.parse(line) as { instance: string }).instance;
    };
    const restart = async (failpoint?: string): Promise<void> => {
      await stack.start(failpoint === undefined ? {} : { LEDGER_TEST_FAILPOINT: failpoint }, {
        until: 'listening',
      });
    };
    /** Loads the service until it dies: of its failpoint, or by a kill after so many answers. How many calls that cut off. */
    const runToDeath = async (afterAnswers: number): Promise<number> => {
      const { stop, ended } = stack.service();
      let alive = true;
      void ended.then(() => {
        alive = false;
      });
      await load.run((answers) => {
        if (alive && answers >= afterAnswers) {
          alive = false;
          void stop('SIGKILL');
        }
        return !alive;
      });
      expect(await ended).to.equal('SIGKILL');
      return load.operations.filter(({ acknowledged }) => !acknowledged).length;
    };
    const assertHubs = (): void => {
      for (const file of hubFiles()) {
        expect(checkHubFile(file), file).to.equal('ok');
        assertNoSecondObject(file);
      }
    };

    it('between a hub write and our record of it: the order is found there, not made twice', async () => {
      await stack.stop('SIGTERM');
      // The second effect of the only order is the one that creates the object on the hub; the first chooses the hub.
      await restart('after-effect-before-record:2');
      const killed = instance();
      await load.run((answers) => answers >= 1, 1);
      expect(await stack.service().ended).to.equal('SIGKILL');
      const open = unrecordedEffects(await readLog(stack), killed);
      const written = hubFiles()
        .flatMap((file) => readHubCalls(file))
        .filter(
          (call) => call.instance === killed && WRITES.includes(call.result) && open.has(call.effectId),
        );
      expect(written.map(({ result }) => result)).to.deep.equal(['created']);
      await restart();
      await load.settle();
    });

    it('under load: every acknowledged command is there exactly once, every other is settled by its retry', async () => {
      const fromOutside: number[] = [];
      await stack.stop('SIGTERM');
      for (const { failpoint, afterAnswers } of deaths(kills - 1, SEED)) {
        await restart(failpoint);
        // What was unanswered is repeated first, beside what is new.
        const cutOff = await runToDeath(afterAnswers);
        if (failpoint === undefined) fromOutside.push(cutOff);
        assertCarriedOutOnce(await readLog(stack), load.operations);
      }
      // A kill that meets no call under way proves little. Answers that came with its last breath may leave one without.
      const cutOff = fromOutside.reduce((sum, calls) => sum + calls, 0);
      expect(cutOff, `calls cut off: ${fromOutside.join()}`).to.be.at.least(fromOutside.length);
      await restart();
      await load.settle();
      const log = await readLog(stack);
      assertCarriedOutOnce(log, load.operations);
      expect(load.operations.filter(({ acknowledged }) => !acknowledged)).to.deep.equal([]);
      expect(load.operations.length).to.be.greaterThan(kills * 10);
      assertHubs();
    });

    it('leaves every cluster as its owner wanted it, and no second object on any hub', async () => {
      alice = await stack.client({ tenant: 'acme', user: 'alice' });
      for (const wanted of load.expected()) {
        let last: string | undefined;
        const asWanted = async (): Promise<boolean> => {
          last = difference(wanted, await find(alice, wanted.id));
          return last === undefined;
        };
        await until(`${wanted.id} is as wanted`, asWanted, SETTLED_MS[store]).catch((error: unknown) => {
          throw new Error(last, { cause: error });
        });
      }
      const { total } = await alice.get<{ total: number }>(`${CLUSTERS}?limit=0`);
      expect(total).to.equal(load.expected().filter(({ deleted }) => !deleted).length);
      assertHubs();
    });

    it('leaves read models that equal those built from the first event', async () => {
      expect(await stack.stop('SIGTERM')).to.equal(0);
      // Without the processes nobody writes, so that both stand at the same position.
      const digests = async (): Promise<unknown> => {
        await stack.start({ LEDGER_ROLES: 'api' });
        const admin = await stack.client({ admin: true, user: 'root' });
        const found = await Promise.all(
          VIEWS.map((view) => admin.get<object>(`/api/ledger/v1/projections/${view}/digest`)),
        );
        await stack.stop('SIGTERM');
        return found;
      };
      const live = await digests();
      rmSync(join(stack.dataDir, 'read-models'), { recursive: true });
      expect(await digests()).to.deep.equal(live);
    });
  });
};

const find = async (client: ApiClient, id: string): Promise<ClusterBody | undefined> => {
  try {
    return await client.get<ClusterBody>(`${CLUSTERS}/${id}`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
};
