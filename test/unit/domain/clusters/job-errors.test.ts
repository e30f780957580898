import { expect } from 'chai';
import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { assess } from '../../../../src/domain/clusters/observation.ts';
import { isRejection } from '../../../../src/domain/decider.ts';
import { registry } from '../../../../src/domain/registry.ts';
import { clusterOrderSpec } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { healthy, observedOrder, onHub, ordered, readyHistory, time } from './samples.ts';

const WORDS = 'failed: no hosts on aap.internal';

/** What is recorded of a job that failed with these words. */
const recorded = (
  history: readonly ClusterEvent[],
  jobErrors?: { readonly correlationId: string; readonly shown: boolean },
  words = WORDS,
): ClusterEvent | undefined => {
  const order = observedOrder({
    phase: 'Progressing',
    jobs: [{ jobId: '7', type: 'provision', state: 'Failed', timestamp: time(9), message: words }],
  });
  const built = history === readyHistory ? { built: ordered.nodeSets } : {};
  const assessment = assess(healthy({ order }), {
    spec: clusterOrderSpec(ordered),
    nodeSets: ordered.nodeSets,
    controller: 'operator',
    wasAvailable: true,
    wasReady: true,
    ...built,
  });
  const state = history.reduce(clusterDecider.evolve, clusterDecider.initialState());
  const command = { type: 'RecordObservation', at: time(10), assessment } as const;
  const decided = clusterDecider.decide(state, jobErrors === undefined ? command : { ...command, jobErrors });
  if (isRejection(decided)) throw new Error(decided.message);
  return decided.find(({ type }) => type === 'ClusterFailed' || type === 'ClusterChangeFailed');
};
const asTenant = (event: ClusterEvent | undefined): object | undefined =>
  event === undefined
    ? undefined
    : registry.redact({ type: event.type, data: event.data as never }, 'tenant')?.data;

describe('what tenants read of a failed job', () => {
  for (const [what, history] of [
    ['an order', onHub],
    ['a change of a running cluster', readyHistory],
  ] as const) {
    it(`of ${what} is that the automation failed, with the correlation id; the provider keeps its words`, () => {
      const event = recorded(history, { correlationId: 'c-1', shown: false });
      expect(event?.data).to.deep.include({
        reason: 'JobFailed',
        message: "the provider's automation failed (correlation id c-1)",
        detail: `job 7 ended as Failed: ${WORDS}`,
      });
      expect(JSON.stringify(asTenant(event)))
        .to.include('correlation id c-1')
        .and.to.not.include('aap.internal');
    });
    it(`of ${what} is what the job said, too, where the provider wants it`, () => {
      const event = recorded(history, { correlationId: 'c-1', shown: true });
      expect(asTenant(event)).to.deep.include({
        message: `the provider's automation failed: job 7 ended as Failed: ${WORDS} (correlation id c-1)`,
      });
    });
  }
  it('is its end where it is long', () => {
    const event = recorded(onHub, { correlationId: 'c-1', shown: true }, `${'x'.repeat(5_000)}the cause`);
    const message = String((event?.data as { message?: string } | undefined)?.message);
    expect(message.length).to.be.lessThan(1_100);
    expect(message).to.match(/^the provider's automation failed: …x+the cause \(correlation id c-1\)$/);
  });
  it('is told once', () => {
    const told = { correlationId: 'c-1', shown: false };
    const first = recorded(onHub, told);
    if (first === undefined) throw new Error('nothing was recorded');
    expect(recorded([...onHub, first], told)).to.equal(undefined);
  });
});
