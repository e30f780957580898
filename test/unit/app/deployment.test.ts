import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import {
  assertDeployment,
  DEPLOYMENT_STREAM,
  DeploymentMismatch,
  LOG_FORM,
  LogOfAnotherForm,
  readDeployment,
  rebindDeployment,
} from '../../../src/app/deployment/deployment.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { createFakeClock } from '../../support/commands/fake-context.ts';
import { createFakeIds } from '../../support/commands/fake-incarnation.ts';

type Store = ReturnType<typeof createMemoryEventStore>;

const ids = createFakeIds('deployment');
const writer = { clock: createFakeClock(), ids, instance: 'i' };
const bind = (store: Store, fingerprint: string, name = 'ledger') =>
  assertDeployment({ store, fingerprint, name, ...writer });

describe('binding of a log to its deployment', () => {
  it('is made by the first start and accepts the same keys from then on', async () => {
    const store = createMemoryEventStore();
    const first = await bind(store, 'f1');
    expect(first).to.include({ fingerprint: 'f1', name: 'ledger' });
    expect(await bind(store, 'f1')).to.deep.equal(first);
    expect(await readDeployment(store)).to.deep.equal(first);
    expect(await store.currentRevision(DEPLOYMENT_STREAM)).to.equal(0);
  });

  it('refuses a start with other keys, naming the setting', async () => {
    const store = createMemoryEventStore();
    await bind(store, 'f1');
    const refused: unknown = await bind(store, 'f2').catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(DeploymentMismatch);
    expect(String(refused)).to.include('LEDGER_SECRETS_DIR');
  });

  it('refuses a log of another form, older or newer, in one sentence', async () => {
    for (const form of [undefined, LOG_FORM - 1, LOG_FORM + 1]) {
      const store = createMemoryEventStore();
      await bind(store, 'f1');
      const bound = await store.readStream(DEPLOYMENT_STREAM, { limit: 1 })[Symbol.asyncIterator]().next();
      const { form: _form, ...data } = (bound.value as RecordedEvent).data;
      const other = { ...data, ...(form === undefined ? {} : { form }) };
      const { type, metadata } = bound.value as RecordedEvent;
      await store.append(DEPLOYMENT_STREAM, 0, [
        { id: ids.uuidv7(), type, data: JSON.stringify(other), metadata: JSON.stringify(metadata) },
      ]);
      for (const attempt of [bind(store, 'f1'), readDeployment(store), rebindDeployment(store, writer)]) {
        const refused: unknown = await attempt.catch((error: unknown) => error);
        expect(refused).to.be.instanceOf(LogOfAnotherForm);
        expect((refused as Error).message)
          .to.include(`form ${form ?? 1}, this version reads form ${LOG_FORM}`)
          .and.to.include('name another LEDGER_DATA_DIR')
          .and.not.to.match(/[.\n]/);
      }
    }
  });

  it('lets only one of two first starts with different keys through', async () => {
    const store = createMemoryEventStore();
    const both = await Promise.allSettled([bind(store, 'f1'), bind(store, 'f2')]);
    expect(both.map(({ status }) => status).toSorted()).to.deep.equal(['fulfilled', 'rejected']);
  });

  it('records a changed name and keeps the id', async () => {
    const store = createMemoryEventStore();
    const { deploymentId } = await bind(store, 'f1');
    await bind(store, 'f1', 'prod-east');
    expect(await readDeployment(store)).to.include({ name: 'prod-east', deploymentId, fingerprint: 'f1' });
  });

  it('says nothing of a log on which no service has started', async () => {
    const store = createMemoryEventStore();
    expect(await readDeployment(store)).to.equal(undefined);
    const refused: unknown = await rebindDeployment(store, writer).catch((error: unknown) => error);
    expect(String(refused)).to.include('no service has started');
  });

  it('puts a restored log under a new id and remembers the former ones in order', async () => {
    const store = createMemoryEventStore();
    const first = await bind(store, 'f1', 'prod-east');
    const second = await rebindDeployment(store, writer);
    const third = await rebindDeployment(store, writer);
    expect(third).to.deep.equal({
      fingerprint: 'f1',
      name: 'prod-east',
      deploymentId: third.deploymentId,
      formerIds: [first.deploymentId, second.deploymentId],
    });
    expect(new Set([first, second, third].map(({ deploymentId }) => deploymentId)).size).to.equal(3);
    expect(await bind(store, 'f1', 'prod-east')).to.deep.equal(third);
  });
});
