import { expect } from 'chai';
import fc from 'fast-check';
import { readRfc3339 } from '../../../src/http/times.ts';
import { check } from '../../support/property.ts';

describe('times that callers write', () => {
  it('are read as what they say', () => {
    const wanted = Date.UTC(2026, 1, 28, 11, 30, 15, 120);
    for (const text of [
      '2026-02-28T11:30:15.12Z',
      '2026-02-28t11:30:15.120z',
      '2026-02-28T11:30:15.120999999Z',
      '2026-02-28T13:30:15.12+02:00',
      '2026-02-28T13:30:15.12 02:00',
      '2026-02-28T06:00:15.12-05:30',
    ])
      expect(readRfc3339(text), text).to.equal(wanted);
    expect(readRfc3339('2024-02-29T00:00:00Z')).to.equal(Date.UTC(2024, 1, 29));
  });
  it('are none where no calendar and no clock has them', () => {
    for (const text of [
      '2026-02-31T00:00:00Z',
      '2026-02-29T00:00:00Z',
      '2026-04-31T23:00:00+02:00',
      '2026-13-01T00:00:00Z',
      '2026-00-10T00:00:00Z',
      '2026-01-00T00:00:00Z',
      '2026-01-01T24:00:00Z',
      '2026-01-01T23:60:00Z',
      '2026-01-01T23:59:60Z',
      '2026-01-01T00:00:00+24:00',
      '2026-01-01T00:00:00+01:60',
      '2026-01-01T00:00:00',
      '2026-01-01',
      '2026-01-01T00:00:00.Z',
      '2026-01-01T00:00:00Z ',
      'yesterday',
      '',
    ])
      expect(readRfc3339(text), text).to.equal(undefined);
  });
  it('come back as they were written, and any day that is given is one of the calendar', () => {
    const years = { min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z') };
    check(
      fc.property(fc.date({ ...years, noInvalidDate: true }), (date) => {
        expect(readRfc3339(date.toISOString())).to.equal(date.getTime());
      }),
    );
    const two = (value: number): string => String(value).padStart(2, '0');
    check(
      fc.property(fc.integer({ min: 1900, max: 2100 }), fc.nat(13), fc.nat(32), (year, month, day) => {
        const exists = month >= 1 && month <= 12 && day >= 1 && day <= new Date(year, month, 0).getDate();
        const read = readRfc3339(`${year}-${two(month)}-${two(day)}T00:00:00Z`);
        expect(read).to.equal(exists ? Date.UTC(year, month - 1, day) : undefined);
      }),
    );
  });
});
