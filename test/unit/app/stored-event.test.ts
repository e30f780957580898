import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { firstNonUtf8, lookAtEvent, type StoredEvent } from '../../../src/app/log/stored-event.ts';
import { registry } from '../../../src/domain/registry.ts';

const sample = JSON.parse(readFileSync('fixtures/events/LegalHoldReleased.v1.json', 'utf8')) as object;

/** An event as a store keeps it. */
const stored = (
  data: object | string | Uint8Array,
  { type = 'LegalHoldReleased', metadata = { schemaVersion: 1 } as object | string } = {},
): StoredEvent => ({
  position: '1',
  stream: 'retention-acme',
  revision: 3,
  id: 'an-id',
  type,
  recordedAt: '2026-11-22T10:00:00.000Z',
  data: bytesOf(data),
  metadata: bytesOf(metadata),
  faults: [],
});
const bytesOf = (text: object | string | Uint8Array): Uint8Array =>
  text instanceof Uint8Array ? text : Buffer.from(typeof text === 'string' ? text : JSON.stringify(text));

const faultsOf = (event: StoredEvent) => lookAtEvent(event, registry).faults;

describe('a look at a stored event', () => {
  it('finds nothing wrong with a sound one', () => {
    const { faults, read } = lookAtEvent(stored(sample), registry);
    expect(faults).to.deep.equal([]);
    expect(read?.data).to.deep.equal(sample);
  });

  it('names the field that its schema refuses', () => {
    const faults = faultsOf(stored({ ...sample, holdId: 7, surplus: true }));
    expect(faults.map(({ at }) => at)).to.include('data.holdId');
    expect(faults.some(({ problem }) => problem.includes('surplus'))).to.equal(true);
  });

  it('says where a text is no JSON, no object, and no UTF-8, of data and metadata alike', () => {
    expect(faultsOf(stored('{"at":'))[0]).to.include({ at: 'data' });
    expect(faultsOf(stored('{"at":'))[0]?.problem).to.match(/^not JSON: /);
    expect(faultsOf(stored('[1]'))).to.deep.equal([{ at: 'data', problem: 'not a JSON object' }]);
    const cut = Buffer.from([0x7b, 0x22, 0xe2, 0x82, 0x22, 0x7d]);
    expect(faultsOf(stored(cut))).to.deep.equal([{ at: 'data', problem: 'byte 2 is not UTF-8' }]);
    expect(faultsOf(stored(sample, { metadata: 'null' }))).to.deep.equal([
      { at: 'metadata', problem: 'not a JSON object' },
    ]);
    // A text may hold the replacement character itself.
    expect(firstNonUtf8(Buffer.from('\u{fffd}'))).to.equal(undefined);
  });

  it('tells an event of a newer release from a damaged one', () => {
    expect(faultsOf(stored({}, { type: 'StarOrdered' }))).to.deep.equal([
      { at: 'type', problem: "this release knows no type 'StarOrdered': a newer one may" },
    ]);
    const newer = faultsOf(stored(sample, { metadata: { schemaVersion: 99 } }));
    expect(newer.map(({ at }) => at)).to.deep.equal(['metadata.schemaVersion']);
    expect(newer[0]?.problem).to.include('version 99').and.to.include('up to version 1');
    expect(faultsOf(stored(sample, { metadata: {} }))[0]?.at).to.equal('metadata.schemaVersion');
  });

  it('keeps what the store itself has found', () => {
    const event = { ...stored(sample), faults: [{ at: 'checksum', problem: 'does not match' }] };
    expect(faultsOf(event)).to.deep.equal(event.faults);
  });
});
