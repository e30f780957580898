import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import type { ClusterObservation } from '../../../../src/domain/clusters/observed.ts';
import type { PlaceResult } from '../../../../src/domain/hubs/placement.ts';
import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import { clusterEventTypes } from '../../../../src/domain/clusters/event-types.ts';
import {
  CLUSTER_STEPS,
  clusterOrderWorkflow,
} from '../../../../src/domain/clusters/order-workflow/workflow.ts';
import { hubFacts, rulesFor } from '../../../../src/domain/hubs/hub-facts.ts';
import { createStepRun, done } from '../../../support/domain/step-run.ts';
import { decision, HUB, ID, ordered } from './samples.ts';

export { done, failed, refused, unknown } from '../../../support/domain/step-run.ts';

const steps = rulesFor(hubFacts({ id: HUB, document: {} }));
/** Types that nobody outside is told of. */
const INTERNAL = new Set(
  clusterEventTypes.filter(({ audience }) => audience === 'internal').map(({ type }) => type),
);

export const placedOn = (hub = HUB): PlaceResult => ({
  placed: true,
  hub,
  namespace: 'osac-hub',
  mode: 'operator',
  controller: 'operator',
  simulated: true,
  steps,
  decision,
});
/** A cluster and its run side by side, driven by hand. */
export const createOrderRun = () => {
  const told: string[] = [];
  const noting: typeof clusterOrderWorkflow = {
    ...clusterOrderWorkflow,
    decide: (state, input) => {
      const reaction = clusterOrderWorkflow.decide(state, input);
      told.push(...reaction.commands.map(({ command }) => command.type));
      return reaction;
    },
  };
  const base = createStepRun(noting, clusterDecider, { id: ID, steps: CLUSTER_STEPS });
  const run = {
    ...base,
    /** Carries out what is told; the types of these commands and of those that inputs have led to since the last call. */
    commands: (): string[] => [...told.splice(0), ...base.commands()],
    cluster: base.subject,
    clusterEvents: (): readonly ClusterEvent[] => base.subjectLog() as unknown as readonly ClusterEvent[],
    /** Without those that only the service itself reads. */
    clusterTypes: (): string[] => base.subjectTypes().filter((type) => !INTERNAL.has(type)),
    isClosed: (): boolean => clusterOrderWorkflow.isClosed(base.state()),
    order: () => base.command({ type: 'OrderCluster', ...ordered }),
    /** Accepted, placed and sent to the hub. */
    toHub: () => {
      run.order();
      run.perform('place', done(placedOn()));
      run.perform('apply', done({ uid: 'uid-1' }));
      run.commands();
    },
    toReady: (observation: ClusterObservation) => {
      run.toHub();
      run.observe(observation);
      run.commands();
    },
  };
  return run;
};
