import { expect } from 'chai';
import type { DomainEvent } from '../../../src/domain/decider.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { registry } from '../../../src/domain/registry.ts';
import { eventSamples } from '../../support/domain/event-samples.ts';

/** Reads of the past decide by the first event of a stream whose object it is. */
describe('the first event of every kind', () => {
  const samples = eventSamples.map(
    ({ type, version, data }): DomainEvent => ({ type, data: registry.upcast(type, version, data) }),
  );

  it('says as stored whose tenant the object is', () => {
    for (const kind of kinds) {
      let begun = 0;
      for (const sample of samples) {
        const state = (kind.decider.evolve as (state: unknown, event: DomainEvent) => unknown)(
          kind.decider.initialState(),
          sample,
        );
        const view = (kind.view as (state: unknown) => ReturnType<typeof kind.view>)(state);
        if (!view.exists) continue;
        begun += 1;
        expect(stringAt(sample.data as JsonObject, 'tenant'), sample.type)
          .to.equal(view.tenant)
          .and.not.equal('');
      }
      expect(begun, kind.kind).to.be.greaterThan(0);
    }
  });
});
