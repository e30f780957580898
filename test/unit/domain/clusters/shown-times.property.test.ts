import { expect } from 'chai';
import fc from 'fast-check';
import { evolveCluster } from '../../../../src/domain/clusters/cluster.ts';
import { shownConditions, shownState } from '../../../../src/domain/clusters/shown-status.ts';
import { initialCluster, isLiveCluster, isStoredCluster } from '../../../../src/domain/clusters/state.ts';
import { clusterHistories } from '../../../support/arbitraries/cluster-histories.ts';
import { check } from '../../../support/property.ts';
import { dispatched, selected } from './samples.ts';

/** Most histories end before their order is sent. */
const onItsHub = clusterHistories().map(([ordered, ...others]) => [
  ...(ordered === undefined ? [] : [ordered]),
  selected,
  dispatched,
  ...others.filter(({ type }) => type !== 'ClusterDeleted'),
]);

describe('clusters: since when something is shown', () => {
  it('is the time of the event that changed it', () =>
    check(
      fc.property(fc.oneof(clusterHistories(), onItsHub), (history) => {
        let state = initialCluster();
        const since: { [condition: string]: string } = {};
        let stateSince = '';
        let shown = { state: '', conditions: new Map<string, boolean>() };
        for (const event of history) {
          const isOver = isStoredCluster(state) && !isLiveCluster(state);
          state = evolveCluster(state, event);
          if (!isStoredCluster(state) || isOver) continue;
          const conditions = new Map(shownConditions(state).map(({ type, status }) => [type, status]));
          for (const [type, status] of conditions)
            if (shown.conditions.get(type) !== status) since[type] = event.data.at;
          if (shownState(state) !== shown.state) stateSince = event.data.at;
          shown = { state: shownState(state), conditions };
          expect({ since: state.conditionsSince, stateSince: state.stateSince }).to.deep.equal({
            since,
            stateSince,
          });
        }
      }),
      { numRuns: 300 },
    ));
});
