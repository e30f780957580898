import { expect } from 'chai';
import { prefersGzip } from '../../../src/http/encodings.ts';

/** RFC 9110 §12.5.3. */
describe('answers packed by gzip', () => {
  const WANTED: readonly string[] = [
    'gzip',
    'GZIP',
    'deflate, gzip, br',
    'gzip;q=0.5',
    'gzip; q=0.001',
    'br;q=1, gzip;q=0.8, *;q=0.1',
    '*',
    'identity;q=0, gzip',
    'identity;q=0.5, gzip;q=1',
  ];
  const UNWANTED: readonly (string | undefined)[] = [
    undefined,
    '',
    'identity',
    'br',
    'gzip;q=0',
    'gzip;q=0.0',
    'gzip ; q=0',
    'br, gzip;q=0',
    'gzip;q=0, *',
    '*;q=0',
    'identity, gzip;q=0.2',
    'x-gzip-like',
    'not-gzip',
  ];
  for (const [wanted, all] of [
    [true, WANTED],
    [false, UNWANTED],
  ] as const)
    for (const accepted of all)
      it(`are ${wanted ? '' : 'not '}for who says ${accepted === undefined ? 'nothing' : `'${accepted}'`}`, () => {
        expect(prefersGzip(accepted === undefined ? {} : { 'accept-encoding': accepted })).to.equal(wanted);
      });
});
