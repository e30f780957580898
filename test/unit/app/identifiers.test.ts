import { expect } from 'chai';
import fc from 'fast-check';
import { v5 } from 'uuid';
import { derivedCommandId, eventId, isDerivedForm } from '../../../src/app/log/identifiers.ts';
import { check } from '../../support/property.ts';
import { anyText } from '../../support/arbitraries/any-text.ts';

// Part of the storage format: a changed one would break the idempotency of everything already stored.
const EVENT = '3f0d4c26-6f0e-4a58-9a3c-5b3d0a1f7c11';
const DERIVED_COMMAND = '5d9e8c17-2a4f-4b66-8c0d-9f3b7e21a447';

describe('derived ids', () => {
  it('are the UUIDs of version 5 that the library makes of the same name', () => {
    const text = anyText({ maxLength: 60 });
    check(
      fc.property(text, text, fc.nat(), (commandId, stream, index) => {
        const id = eventId(commandId, stream, index);
        expect(id).to.equal(v5(JSON.stringify([commandId, stream, index]), EVENT));
        expect(isDerivedForm(id)).to.equal(true);
        expect(derivedCommandId(commandId, stream, index)).to.equal(
          v5(JSON.stringify([commandId, stream, index]), DERIVED_COMMAND),
        );
      }),
    );
  });

  it('take names of any length', () => {
    const stream = `cluster-${'ü€'.repeat(5_000)}`;
    expect(eventId('c', stream, 0)).to.equal(v5(JSON.stringify(['c', stream, 0]), EVENT));
  });
});
