import { expect } from 'chai';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { clusterMeter } from '../../../../src/domain/clusters/acting.ts';
import {
  heartbeatRecords,
  lifecycleRecords,
  type MeteringRecord,
} from '../../../../src/domain/metering/records.ts';
import { deletionRequested, order, ordered, readyHistory, time } from '../clusters/samples.ts';

/** given these events, when this one (with this id), then these records. */
const given = (...history: readonly ClusterEvent[]) => {
  const meter = history.reduce(
    (before, event) => clusterMeter.fold(before, event).meter,
    clusterMeter.initial(),
  );
  return {
    when: (event: ClusterEvent): readonly MeteringRecord[] => {
      const step = clusterMeter.fold(meter, event);
      return lifecycleRecords('e1', step.meter, step.changes);
    },
    heartbeatAt: (minute: number): readonly MeteringRecord[] =>
      heartbeatRecords(meter, Date.parse(time(minute))),
  };
};

describe('metering records', () => {
  it("of a creation have the event's id, and all twelve fields, null where there is nothing", () => {
    expect(given().when(order).slice(0, 1)).to.deep.equal([
      {
        type: 'osac.resource.created.v1',
        id: 'e1',
        time: time(0),
        resource: { type: 'cluster_order', id: ordered.id, tenant: 't1', project: '' },
        data: {
          resource_id: ordered.id,
          resource_type: 'cluster_order',
          tenant_id: 't1',
          project_id: null,
          catalog_item_id: null,
          template_id: 'osac.templates.small',
          previous_state: null,
          current_state: 'PROGRESSING',
          transition_time: '2026-11-21T12:00:00.000000000Z',
          duration_seconds: null,
          billing_dimensions: { cluster_template: 'small', release_image: '4-20-3-abcd' },
          schema_version: 'v1',
        },
      },
    ]);
  });

  it('are one for each component: N node sets make N + 1', () => {
    const [, ...records] = given().when(order);
    expect(records.map(({ type, id }) => [type, id])).to.deep.equal([
      ['osac.resource.started.v1', 'e1/_control_plane'],
      ['osac.resource.started.v1', 'e1/gpu'],
      ['osac.resource.started.v1', 'e1/workers'],
    ]);
    expect(records.map(({ data }) => data['billing_dimensions'])).to.deep.equal([
      {
        cluster_template: 'small',
        node_set: '_control_plane',
        component: 'control_plane',
        host_type: '_control_plane',
        node_count: 1,
        release_image: '4-20-3-abcd',
      },
      {
        cluster_template: 'small',
        node_set: 'gpu',
        component: 'worker',
        host_type: 'g5',
        node_count: 2,
        release_image: '4-20-3-abcd',
      },
      {
        cluster_template: 'small',
        node_set: 'workers',
        component: 'worker',
        host_type: 'fc430',
        node_count: 3,
        release_image: '4-20-3-abcd',
      },
    ]);
  });

  it('say where the order came from, by id', () => {
    const item = { id: 'item-1', name: 'small-item', revision: 0 };
    const fromItem: ClusterEvent = {
      type: 'ClusterOrdered',
      data: { ...ordered, project: 'web', catalogItem: item, version: { ...ordered.version, name: '' } },
    };
    const [created, started] = given().when(fromItem);
    expect(created?.data).to.deep.include({ catalog_item_id: 'item-1', project_id: 'web' });
    expect(created?.data['billing_dimensions']).to.deep.equal({ cluster_template: 'small' });
    expect(started?.data['billing_dimensions']).not.to.have.property('release_image');
  });

  it('give durations in seconds, to the millisecond', () => {
    const at = '2026-11-21T12:20:00.250Z';
    const [suspended] = given(...readyHistory).when({ ...deletionRequested, data: { at } } as ClusterEvent);
    expect(suspended?.data).to.deep.include({
      duration_seconds: 20 * 60 + 0.25,
      transition_time: '2026-11-21T12:20:00.250000000Z',
    });
  });

  it('say when the cluster was delivered, from the first READY on', () => {
    expect(given().when(order)[1]).not.to.have.property('delivered');
    const [, , workers] = given(...readyHistory).when(deletionRequested);
    expect(workers?.delivered).to.equal(time(9));
    expect(workers?.data).to.deep.include({ duration_seconds: 20 * 60 });
    expect(given(...readyHistory).heartbeatAt(30)[0]?.delivered).to.equal(time(9));
  });

  it('are not made of what belongs to nobody', () => {
    expect(given().when({ type: 'ClusterOrdered', data: { ...ordered, tenant: '' } })).to.deep.equal([]);
    expect(given().heartbeatAt(1)).to.deep.equal([]);
  });

  it('of heartbeats are computed from the meter, as of the start of the window', () => {
    const records = given(...readyHistory).heartbeatAt(30);
    const window = Date.parse(time(30)) / 1000;
    expect(records.map(({ id }) => id)).to.deep.equal(
      ['_control_plane', 'gpu', 'workers'].map((set) => `hb/${ordered.id}/${window}/${set}`),
    );
    expect(records[2]).to.deep.include({
      type: 'osac.resource.heartbeat.v1',
      time: '2026-11-21T12:30:00.000Z',
    });
    expect(records[2]?.data).to.deep.equal({
      resource_id: ordered.id,
      resource_type: 'cluster_order',
      tenant_id: 't1',
      project_id: null,
      current_state: 'READY',
      duration_seconds: 30 * 60,
      billing_dimensions: {
        cluster_template: 'small',
        node_set: 'workers',
        component: 'worker',
        host_type: 'fc430',
        node_count: 3,
        release_image: '4-20-3-abcd',
      },
      schema_version: 'v1',
    });
    expect(given(...readyHistory, deletionRequested).heartbeatAt(30), 'not billed').to.deep.equal([]);
    expect(given(...readyHistory).heartbeatAt(0)[0]?.data, 'began in the window').to.include({
      duration_seconds: 0,
    });
  });
});
