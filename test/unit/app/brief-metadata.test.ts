import { expect } from 'chai';
import fc from 'fast-check';
import {
  briefTextOf,
  completeMetadata,
  workflowActor,
  type CommandMetadata,
} from '../../../src/app/log/metadata.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { defined } from '../../../src/domain/json-tools.ts';
import { check } from '../../support/property.ts';

const AT = '2026-11-21T10:00:00.000Z';
const METADATA: CommandMetadata = {
  tenant: 'acme',
  project: '',
  actor: workflowActor('clusterOrder', 'subject-1'),
  command: 'RecordApplied',
  commandId: 'c-1',
  requestHash: 'c-1',
  correlationId: 'c-1',
  causationId: 'c-1',
  occurredAt: AT,
  instance: 'i-1',
};
const stored = (metadata: CommandMetadata, data: JsonObject): JsonObject =>
  JSON.parse(briefTextOf(metadata)(data, 1, undefined)) as JsonObject;

describe('metadata as it is stored', () => {
  it('leaves out what the rest of the event says', () => {
    expect(stored(METADATA, { at: AT })).to.deep.equal({
      form: 'brief',
      tenant: 'acme',
      actor: { onBehalfOf: 'subject-1', via: 'workflow:clusterOrder' },
      instance: 'i-1',
      command: 'RecordApplied',
      commandId: 'c-1',
    });
  });

  it('tells the time of the decision by that of the data, where that is one', () => {
    const timeIn = ({ occurredAt, occurredAfterMs }: JsonObject) => defined({ occurredAt, occurredAfterMs });
    const decided = { ...METADATA, occurredAt: '2026-11-21T10:00:00.250Z' };
    expect(timeIn(stored(decided, { at: AT }))).to.deep.equal({ occurredAfterMs: 250 });
    for (const data of [{}, { at: 7 }, { at: 'soon' }])
      expect(timeIn(stored(decided, data))).to.deep.equal({ occurredAt: decided.occurredAt });
  });

  it('begins with what many appends have in common, and ends with what is of one event', () => {
    const request = {
      ...METADATA,
      correlationId: 'r-1',
      causationId: 'e-1',
      hub: 'h',
      inputs: { 'cluster-1': 3 },
    };
    const text = briefTextOf(request)({}, 2, { paths: ['/data/a'], salt: '0'.repeat(32) });
    expect(Object.keys(JSON.parse(text) as object).join(' ')).to.equal(
      'form tenant actor instance correlationId command commandId causationId hub inputs ' +
        'occurredAt schemaVersion hidden',
    );
  });

  it('is complete again for whoever reads it, whatever it was', () => {
    const id = fc.constantFrom('c-1', '', 'x');
    const time = fc.constantFrom(AT, '2026-11-21T10:00:00.001Z', '2026-11-21T09:59:59.000Z', 'soon', '');
    const actor = fc.record({
      subjectId: fc.constantFrom('system', 'subject-1'),
      roles: fc.constantFrom([], ['client']),
      authMethod: fc.constantFrom('internal' as const, 'jwt' as const),
      via: fc.constantFrom('http', undefined),
      onBehalfOf: fc.constantFrom('subject-2', undefined),
    });
    const metadata = fc.record({
      tenant: fc.constantFrom('', 'acme'),
      project: fc.constantFrom('', 'ai'),
      actor: actor.map((values) => defined(values)),
      command: fc.constant('DoThing'),
      commandId: fc.constantFrom('c-1', ''),
      requestHash: id,
      correlationId: id,
      causationId: id,
      occurredAt: time,
      instance: fc.constant('i-1'),
      ticket: fc.constantFrom('CHG-1', undefined),
      hub: fc.constantFrom('h', undefined),
    });
    const data = fc.constantFrom<JsonObject>(
      {},
      { at: AT },
      { at: 'soon' },
      { at: '' },
      { at: '2026-11-21' },
      { at: 7 },
    );
    const hidden = fc.constantFrom(undefined, { paths: ['/data/at'], salt: 'f'.repeat(32) });
    check(
      fc.property(metadata, data, fc.constantFrom(1, 2), hidden, (any, of, schemaVersion, cut) => {
        const given = defined(any);
        const text = briefTextOf(given as CommandMetadata)(of, schemaVersion, cut);
        expect(completeMetadata(JSON.parse(text) as JsonObject, of)).to.deep.equal(
          defined({ ...given, schemaVersion, hidden: cut }),
        );
      }),
    );
  });

  it('in another form is what it says', () => {
    for (const other of [{}, { n: 1 }, { commandId: 'c-1', form: 'long' }])
      expect(completeMetadata(other, { at: AT })).to.equal(other);
  });
});
