import { expect } from 'chai';
import fc from 'fast-check';
import { z } from 'zod';
import type { DomainEvent } from '../../../src/domain/decider.ts';
import type { EventType } from '../../../src/domain/event-type.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { aggregates, kinds } from '../../../src/domain/kinds.ts';
import { clusterOrderWorkflow } from '../../../src/domain/clusters/order-workflow/workflow.ts';
import type { OrderRun } from '../../../src/domain/clusters/order-workflow/run.ts';
import { createRegistry, eventTypes, redact, registry } from '../../../src/domain/registry.ts';
import { eventSamples, type EventSample } from '../../support/domain/event-samples.ts';
import { check } from '../../support/property.ts';

const samples = eventSamples;
const lifted = (sample: EventSample): DomainEvent => ({
  type: sample.type,
  data: registry.upcast(sample.type, sample.version, sample.data),
});
const events = samples.map(lifted);
const sampleOf = (type: string): DomainEvent => {
  const found = events.find((event) => event.type === type);
  if (found === undefined) throw new Error(`no sample of ${type}`);
  return found;
};

/** Every aggregate and workflow, by what it folds. */
const folds: readonly {
  name: string;
  initial: () => unknown;
  evolve: (state: unknown, event: DomainEvent) => unknown;
}[] = [
  ...aggregates.map(({ category, decider }) => ({
    name: category,
    initial: decider.initialState,
    evolve: decider.evolve,
  })),
  {
    name: clusterOrderWorkflow.name,
    initial: clusterOrderWorkflow.initialState,
    evolve: (state, { type, data }) => {
      const event = { type, data: data as JsonObject, revision: 0, id: 'e', causationId: 'c', tenant: 't' };
      const isOwn = ['process', undefined].includes(registry.get(type)?.context);
      const of = isOwn ? 'run' : 'subject';
      return clusterOrderWorkflow.evolve(state as OrderRun, { ...event, of });
    },
  },
];

describe('registry: every event type', () => {
  it('has a stored sample of each version, and every sample belongs to a type', () => {
    const wanted = eventTypes.flatMap(({ type, version }) =>
      Array.from({ length: version }, (_, index) => `${type}.v${index + 1}`),
    );
    expect(samples.map(({ type, version }) => `${type}.v${version}`).sort()).to.deep.equal(wanted.sort());
  });
  it('has samples that its schema accepts after lifting', () => {
    for (const sample of samples) {
      const parsed = registry.get(sample.type)?.schema.safeParse(lifted(sample).data);
      expect(parsed?.success, `${sample.type}: ${parsed?.error?.message ?? ''}`).to.equal(true);
    }
  });
  it('refuses fields that nobody described, and undefined', () => {
    for (const { type, schema } of eventTypes) {
      const data = sampleOf(type).data as JsonObject;
      expect(schema.safeParse({ ...data, surprise: 1 }).success, type).to.equal(false);
      expect(schema.safeParse({ ...data, at: undefined }).success, type).to.equal(false);
    }
  });
  it('is folded by its aggregate without throwing, from every state and in any order', () => {
    const first: { readonly [name: string]: string } = {
      ...Object.fromEntries(kinds.map(({ kind, events: { created } }) => [kind, created])),
      name: 'NameReserved',
      agentPool: 'AgentDiscovered',
      hubCapacity: 'HubCapacityDeclared',
      retention: 'ErasureBegun',
      auditGrant: 'AuditGrantGiven',
      auditGrantNotice: 'AuditGrantNoticed',
      auditExport: 'AuditExportRequested',
      lanePauses: 'LanePaused',
      tenantSpace: 'TenantSpaceRequested',
      addressSpace: 'PoolRangesClaimed',
      vlanPool: 'VlanPoolCreated',
      prefixPool: 'PrefixPoolCreated',
      poolSpace: 'PoolSpaceReserved',
      clusterOrder: 'ClusterOrdered',
    };
    check(
      fc.property(
        fc.array(fc.constantFrom(...events), { maxLength: 25 }),
        fc.boolean(),
        (sequence, started) => {
          for (const { name, initial, evolve } of folds) {
            const opening = started ? [sampleOf(first[name] ?? '')] : [];
            expect(() => [...opening, ...sequence].reduce(evolve, initial()), name).to.not.throw();
          }
        },
      ),
    );
    expect(Object.keys(first).sort()).to.deep.equal(folds.map(({ name }) => name).sort());
  });
  it('passes through every fold unchanged when it is of a newer release', () => {
    const unknown: DomainEvent = { type: 'FromTheFuture', data: { at: '2030-01-01T00:00:00.000Z' } };
    for (const { name, initial, evolve } of folds) {
      for (const event of events) {
        const state = evolve(initial(), event);
        expect(evolve(state, unknown), `${name} after ${event.type}`).to.deep.equal(state);
      }
    }
  });
  it('changes a document only in the stream of its resource', () => {
    for (const { type, resource, changesDocument } of eventTypes) {
      if (resource !== undefined)
        expect(
          aggregates.map(({ category }) => category),
          type,
        ).to.include(resource);
      if (changesDocument === false)
        expect(type).to.match(
          /Abandoned|Announced|Automation|Console|Corrected|Duplicated|Endpoint|Entered|Placed|Prepared|Ranges|Revealed|Seen|Tried|Withdrawn/,
        );
    }
  });
});

describe('registry: lifting older versions', () => {
  const local: EventType = {
    type: 'LeaseRequested',
    version: 3,
    context: 'leasing',
    audience: 'tenant',
    schema: z.strictObject({ hours: z.int(), reason: z.string() }),
    upcast: {
      1: ({ days, ...rest }) => ({ ...rest, hours: Number(days) * 24 }),
      2: (data) => ({ ...data, reason: 'not given' }),
    },
  };

  it('goes version by version', () => {
    const { upcast, get } = createRegistry([local]);
    expect(upcast('LeaseRequested', 1, { days: 2 })).to.deep.equal({ hours: 48, reason: 'not given' });
    expect(upcast('LeaseRequested', 2, { hours: 5 })).to.deep.equal({ hours: 5, reason: 'not given' });
    expect(upcast('LeaseRequested', 3, { hours: 5, reason: 'x' })).to.deep.equal({ hours: 5, reason: 'x' });
    expect(
      get('LeaseRequested')?.schema.safeParse(upcast('LeaseRequested', 1, { days: 2 })).success,
    ).to.equal(true);
  });
  it('leaves data of unknown types and of newer versions alone', () => {
    const { upcast } = createRegistry([local]);
    expect(upcast('Other', 1, { a: 1 })).to.deep.equal({ a: 1 });
    expect(upcast('LeaseRequested', 9, { a: 1 })).to.deep.equal({ a: 1 });
  });
  it('is refused when a step is missing or a type comes twice', () => {
    expect(() => createRegistry([{ ...local, version: 4 }])).to.throw(TypeError, 'version 3');
    expect(() => createRegistry([local, local])).to.throw(TypeError, 'twice');
    const { upcast: _none, ...bare } = local;
    expect(() => createRegistry([bare])).to.throw(TypeError, 'version 1');
  });
});

describe('registry: redaction', () => {
  const text = (event: DomainEvent | undefined): string => JSON.stringify(event ?? null);

  it('shows tenants nothing of where and how their clusters are made', () => {
    for (const event of events) {
      const shown = text(redact(event, 'tenant'));
      expect(shown, event.type).to.not.contain('sim-east-1');
      expect(shown, event.type).to.not.contain('fingerprint');
      expect(shown, event.type).to.not.contain('quay.example');
      expect(shown, event.type).to.not.contain('fulfillment-controller');
    }
  });
  it('leaves the rest, and the event itself, as they are', () => {
    const before = structuredClone(sampleOf('ClusterOrdered'));
    const shown = redact(sampleOf('ClusterOrdered'), 'tenant') as DomainEvent<string, JsonObject>;
    expect(shown.data).to.have.nested.property('nodeSets.workers.size', 3);
    expect(shown.data).to.not.have.nested.property('nodeSets.workers.fabricInterface');
    expect(shown.data).to.not.have.property('pullSecret');
    expect(sampleOf('ClusterOrdered')).to.deep.equal(before);
    expect(redact(sampleOf('ClusterLabelled'), 'tenant')).to.deep.equal(sampleOf('ClusterLabelled'));
    const absent: DomainEvent = { type: 'ClusterSpecRevised', data: { at: 'x', spec: {} } };
    expect(redact(absent, 'tenant')).to.deep.equal(absent);
    const odd: DomainEvent = { type: 'ClusterSpecRevised', data: { at: 'x', spec: null } };
    expect(redact(odd, 'tenant')).to.deep.equal(odd);
  });
  it('gives each audience its own events and those of the wider ones', () => {
    expect(redact(sampleOf('HubRegistered'), 'tenant')).to.equal(undefined);
    expect(redact(sampleOf('HubRegistered'), 'provider')).to.equal(sampleOf('HubRegistered'));
    expect(redact(sampleOf('NameReserved'), 'provider')).to.equal(undefined);
    expect(redact(sampleOf('NameReserved'), 'internal')).to.equal(sampleOf('NameReserved'));
    expect(redact({ type: 'FromTheFuture', data: {} }, 'internal')).to.equal(undefined);
  });
});
