import { expect } from 'chai';
import { actingKinds } from '../../../src/domain/acting-kinds.ts';
import { redact, registry } from '../../../src/domain/registry.ts';
import { eventSamples } from '../../support/domain/event-samples.ts';

/** What the timeline of a kind that acts tells of its events: to operators, and to tenants, who see less of them. */
for (const { words, kind, timeline } of actingKinds)
  describe(`timeline: ${words}`, () => {
    const samples = eventSamples.filter(({ type }) => registry.get(type)?.resource === kind);
    it('has events to tell of', () => expect(samples).to.not.have.length(0));
    for (const { type, data } of samples) {
      it(`tells of ${type} in whole sentences, whoever reads it`, () => {
        const sentence = timeline.sentences[type] ?? `no sentence for ${type}`;
        for (const audience of ['tenant', 'provider', 'internal'] as const) {
          const seen = redact({ type, data }, audience);
          if (seen === undefined) continue;
          const told = typeof sentence === 'string' ? sentence : sentence(seen.data);
          expect(told)
            .to.match(/^[A-Z].*[.:)]$/s)
            .and.not.match(/undefined|\[object|no sentence|NaN| {2}/);
        }
      });
    }
  });
