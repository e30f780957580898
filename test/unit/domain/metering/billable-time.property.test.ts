import { expect } from 'chai';
import fc from 'fast-check';
import { evolveCluster } from '../../../../src/domain/clusters/cluster.ts';
import { type ClusterEvent, initialCluster } from '../../../../src/domain/clusters/state.ts';
import { clusterMeter } from '../../../../src/domain/clusters/acting.ts';
import { cluster as clusterKind } from '../../../../src/domain/kinds.ts';
import {
  type Change,
  type ClosedInterval,
  type OpenInterval,
} from '../../../../src/domain/metering/meter.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { objectAt, stringAt, numberAt } from '../../../../src/domain/json-tools.ts';
import { clusterHistories } from '../../../support/arbitraries/cluster-histories.ts';
import { check } from '../../../support/property.ts';

/** What the meter said of a history. */
const metered = (history: readonly ClusterEvent[]) => {
  let meter = clusterMeter.initial();
  const changes: Change[] = [];
  const closed: ClosedInterval[] = [];
  const opened: OpenInterval[] = [];
  for (const event of history) {
    const step = clusterMeter.fold(meter, event);
    meter = step.meter;
    changes.push(...step.changes);
    closed.push(...step.closed);
    opened.push(...step.opened);
  }
  return { meter, changes, closed, opened };
};

/**
 * Billable milliseconds of the control plane and of nodes, worked out another way: from the documents that GET showed,
 * each for as long as it was the newest.
 */
const fromDocuments = (history: readonly ClusterEvent[]): { controlPlane: number; nodes: number } => {
  const total = { controlPlane: 0, nodes: 0 };
  let state = initialCluster();
  let now = 0;
  for (const event of history) {
    const next = Math.max(now, Date.parse(event.data.at));
    const view = clusterKind.view(state);
    if (view.exists && !view.archived && isBillable(view.document)) {
      total.controlPlane += next - now;
      for (const set of Object.values(objectAt(objectAt(view.document, 'spec'), 'node_sets')))
        total.nodes += (next - now) * numberAt(set, 'size');
    }
    state = evolveCluster(state, event);
    now = next;
  }
  return total;
};

const isBillable = (document: JsonObject): boolean =>
  ['CLUSTER_STATE_PROGRESSING', 'CLUSTER_STATE_READY'].includes(
    stringAt(objectAt(document, 'status'), 'state'),
  );

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

describe('billable time', () => {
  it('is what the documents showed, to the millisecond: closed intervals and those that are open', () =>
    check(
      fc.property(clusterHistories(), (history) => {
        const { meter, closed } = metered(history);
        const intervals = [
          ...closed,
          ...meter.open.map((interval) => ({ ...interval, untilMs: meter.atMs })),
        ];
        const length = ({ sinceMs, untilMs }: ClosedInterval): number => untilMs - sinceMs;
        const controlPlane = intervals.filter(({ component }) => component.component === 'control_plane');
        const workers = intervals.filter(({ component }) => component.component === 'worker');
        expect({
          controlPlane: sum(controlPlane.map(length)),
          nodes: sum(workers.map((interval) => length(interval) * interval.component.nodeCount)),
        }).to.deep.equal(fromDocuments(history));
      }),
      { numRuns: 1000 },
    ));

  it('is the sum of the durations that are published, once the last interval is closed', () =>
    check(
      fc.property(clusterHistories(), (history) => {
        const { meter, closed, changes } = metered(history);
        const published = sum(changes.map(({ durationMs }) => durationMs ?? 0));
        expect(published).to.equal(sum(closed.map(({ sinceMs, untilMs }) => untilMs - sinceMs)));
        const ending: ClusterEvent = {
          type: 'ClusterDeleted',
          data: { at: new Date(meter.atMs).toISOString(), how: 'absence-confirmed' },
        };
        expect(metered([...history, ending]).meter.open).to.deep.equal([]);
      }),
    ));

  it('has no two intervals of a component at once, none of a negative length, and closes what it opened', () =>
    check(
      fc.property(clusterHistories(), (history) => {
        const { meter, closed, opened } = metered(history);
        const of = ({ component: { component, nodeSet } }: OpenInterval): string => `${component}/${nodeSet}`;
        const ends = new Map<string, number>();
        for (const interval of [...closed, ...meter.open.map((open) => ({ ...open, untilMs: Infinity }))]) {
          expect(interval.sinceMs).to.be.at.least(ends.get(of(interval)) ?? 0);
          expect(interval.untilMs).to.be.at.least(interval.sinceMs);
          ends.set(of(interval), interval.untilMs);
        }
        const known = opened.map((interval) => `${of(interval)} ${interval.sinceMs}`).toSorted();
        const told = [...closed, ...meter.open].map((interval) => `${of(interval)} ${interval.sinceMs}`);
        expect(told.toSorted()).to.deep.equal(known);
      }),
    ));

  it('starts once, and resumes and is suspended in turns, for all components together', () =>
    check(
      fc.property(clusterHistories(), (history) => {
        const whole = metered(history).changes.filter(
          ({ type, component }) => component?.component === 'control_plane' && type !== 'updated',
        );
        expect(whole.map(({ type }) => type)).to.deep.equal(
          whole.map((_change, i) => (i === 0 ? 'started' : i % 2 === 1 ? 'suspended' : 'resumed')),
        );
      }),
    ));
});
