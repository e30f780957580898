import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { FAILPOINTS } from '../../../src/app/process-runner/types.ts';
import { ApiError } from '../../../src/cli/api-client.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { assertNoSecondObject, readHubObjects } from '../../support/hubs/hub-journal.ts';
import { PLACED, readyOf } from '../../support/hubs/placed-suite.ts';
import { KIND_SAMPLES, makeHousePool } from '../../support/http/kind-samples.ts';
import { callerOf, seedCatalogue } from '../../support/http/service.ts';
import { createStack, E2E_STORE, PRIVATE, until, type Stack } from '../../support/service/stack.ts';

/** Kills at each failpoint; `npm test` has one kill per kind in the drills of the simulation. */
const KILLED_AT =
  process.env['LEDGER_TEST_KILLS'] === undefined ? ['after-effect-before-record' as const] : FAILPOINTS;
/** What one of its workflows has begun by then. */
const PASSED = [1, 5];
/** A failpoint that nothing comes to: it is killed from outside. */
const PATIENCE_MS = 5_000;

type Made = { readonly path: string; readonly object: string; readonly id: string; readonly ready: string };
type Shown = { readonly status?: { readonly state?: string } };

/** Objects of every kind that is placed on hubs, made and deleted all at once while the service is killed again and again. */
describe(`every placed kind, and kill -9 at ${KILLED_AT.join(', ')}`, function () {
  this.timeout(480_000);
  let stack: Stack;
  before(async () => {
    stack = await createStack(E2E_STORE, { LEDGER_CATALOG: '' });
    await stack.start();
  });
  after(() => stack.dispose());

  const admin = () => stack.client({ admin: true, user: 'root' });
  /** Answers of a service that dies meanwhile are no answers. */
  const send = async (method: 'DELETE' | 'POST', path: string, body?: object): Promise<number> => {
    try {
      await (await admin()).send(method, path, body);
      return 200;
    } catch (error) {
      if (error instanceof ApiError) return error.status;
      return 0;
    }
  };
  const hubFiles = () =>
    readdirSync(join(stack.dataDir, 'hubs'))
      .filter((file) => file.endsWith('.sqlite'))
      .map((file) => join(stack.dataDir, 'hubs', file));
  const killedDuring = async (failpoint: string, work: () => Promise<unknown>): Promise<void> => {
    await stack.stop('SIGKILL');
    await stack.start({ LEDGER_TEST_FAILPOINT: failpoint }, { until: 'listening' });
    const { ended } = stack.service();
    void work();
    const patience = new Promise((resolve) => setTimeout(resolve, PATIENCE_MS));
    await Promise.race([ended, patience]);
    await stack.stop('SIGKILL');
    await stack.start();
  };

  it('each has one object on a hub, and leaves none', async () => {
    const setUp = callerOf({ url: stack.http() }, await stack.token({ admin: true, user: 'root' }));
    await seedCatalogue(setUp);
    await makeHousePool(setUp);
    const around = { user: () => '' };
    const made: Made[] = [];
    const bodies: (readonly [Made, JsonObject])[] = [];
    const order = async (all: typeof bodies): Promise<void> => {
      for (const [{ path }, body] of all) await send('POST', path, body);
    };
    for (const failpoint of KILLED_AT)
      for (const passed of PASSED.slice(0, KILLED_AT.length)) {
        const round = PLACED.map(({ kind, object }): (typeof bodies)[number] => {
          const id = `${kind.kind.toLowerCase()}-${failpoint}-${passed}`;
          const sample = KIND_SAMPLES[kind.kind]?.body(id, around) as JsonObject;
          const metadata = { ...objectAt(sample, 'metadata'), annotations: { simulation: 'factor=0.05' } };
          const path = `${PRIVATE}/${kind.collection}`;
          return [
            { path, object: object.kind, id, ready: readyOf(kind.kind) },
            { ...sample, id, metadata },
          ];
        });
        bodies.push(...round);
        made.push(...round.map(([one]) => one));
        await killedDuring(`${failpoint}:${passed}`, () => order(round));
      }
    const stateOf = async ({ path, id }: Made): Promise<string | undefined> => {
      try {
        const { status } = await (await admin()).get<Shown>(`${path}/${id}`);
        return status?.state ?? '';
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      }
    };
    // A name that a killed creation reserved is free again after a while.
    for (const one of made)
      await until(
        `${one.id} is as wanted`,
        async () => {
          const state = await stateOf(one);
          if (state === undefined) await order(bodies.filter(([other]) => other === one));
          return state?.endsWith(one.ready) === true;
        },
        120_000,
      );
    const objectsOf = ({ object, id }: Made) =>
      hubFiles()
        .flatMap(readHubObjects)
        .filter(({ kind, id: owner }) => kind === object && owner === id);
    for (const one of made) expect(objectsOf(one), one.id).to.have.length(1);

    const remove = () => Promise.all(made.map(({ path, id }) => send('DELETE', `${path}/${id}`)));
    for (const failpoint of KILLED_AT) await killedDuring(`${failpoint}:2`, remove);
    await until(
      'all are gone',
      async () => {
        await remove();
        return (await Promise.all(made.map(stateOf))).every((state) => state === undefined);
      },
      120_000,
    );
    // That it is gone was observed, or it would still be there to be read.
    for (const one of made)
      expect(
        objectsOf(one).map(({ deletionAt }) => deletionAt === undefined),
        one.id,
      ).to.deep.equal([false]);
    for (const file of hubFiles()) assertNoSecondObject(file);
  });
});
