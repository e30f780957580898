import { expect } from 'chai';
import { createLog, type Log, type ProposedEvent } from '../../support/eventstoredb-peer/log.ts';

/** The peer must judge appends as the real server does, or tests against it prove nothing. */
describe('protocol peer: the log', () => {
  const proposed = (id: string): ProposedEvent => ({
    id,
    type: 'Placed',
    contentType: 'application/json',
    data: Buffer.from('{}'),
    metadata: Buffer.alloc(0),
  });
  const ids = (...names: string[]): ProposedEvent[] => names.map(proposed);
  const read = (log: Log, stream: string): unknown => {
    const events = log.read(stream);
    return typeof events === 'string' ? events : events.map((e) => e.id);
  };
  const metadata = (log: Log, stream: string, text: string): void =>
    log.inject(`$$${stream}`, { type: '$metadata', data: Buffer.from(text) });

  it('takes an append at the revision it expects and names the current one otherwise', () => {
    const log = createLog();
    expect(log.append('s', 'no_stream', ids('a', 'b'))).to.include({ kind: 'success', revision: 1 });
    expect(log.append('s', 1, ids('c'))).to.include({ kind: 'success', revision: 2 });
    expect(log.append('s', 1, ids('d'))).to.deep.equal({ kind: 'wrong-version', current: 2 });
    expect(log.append('s', 7, ids('d'))).to.deep.equal({ kind: 'wrong-version', current: 2 });
    expect(log.append('t', 0, ids('d'))).to.deep.equal({ kind: 'wrong-version', current: 'no_stream' });
    expect(log.append('t', 'stream_exists', ids('d')).kind).to.equal('wrong-version');
  });

  it('answers the same ids at the same revision with the first positions, also when the stream moved on', () => {
    const log = createLog();
    const first = log.append('s', 'no_stream', ids('a', 'b'));
    log.append('s', 1, ids('c'));
    expect(log.append('s', 'no_stream', ids('a', 'b'))).to.deep.equal(first);
    expect(read(log, 's')).to.deep.equal(['a', 'b', 'c']);
  });

  it('takes partly equal ids, other ids and the same ids elsewhere for a conflict', () => {
    const log = createLog();
    log.append('s', 'no_stream', ids('a', 'b'));
    for (const other of [ids('a', 'x'), ids('a', 'b', 'c'), ids('b', 'a'), ids('b')])
      expect(log.append('s', 'no_stream', other)).to.deep.equal({ kind: 'wrong-version', current: 1 });
    log.forgetIds(true);
    expect(log.append('s', 'no_stream', ids('a', 'b')).kind).to.equal('wrong-version');
  });

  it('honours $maxCount, $tb and $maxAge when it reads', () => {
    let now = 1_000_000;
    const log = createLog({ now: () => now });
    log.append('s', 'no_stream', ids('a', 'b', 'c'));
    now += 10_000;
    log.append('s', 2, ids('d'));
    metadata(log, 's', '{"$maxCount":2}');
    expect(read(log, 's')).to.deep.equal(['c', 'd']);
    metadata(log, 's', '{"$tb":1}');
    expect(read(log, 's')).to.deep.equal(['b', 'c', 'd']);
    metadata(log, 's', '{"$maxAge":5}');
    expect(read(log, 's')).to.deep.equal(['d']);
  });

  it('forgets a soft-deleted stream until it is written again, and goes on numbering then', () => {
    const log = createLog();
    log.append('s', 'no_stream', ids('a', 'b'));
    log.softDelete('s');
    expect(read(log, 's')).to.equal('not-found');
    expect(log.append('s', 'no_stream', ids('a'))).to.include({ kind: 'success', revision: 2 });
    expect(read(log, 's')).to.deep.equal(['a']);
  });

  it('lets nothing into a stream that was deleted for good, and nothing too large anywhere', () => {
    const log = createLog({ maxAppendSize: 20 });
    log.tombstone('s');
    expect(log.append('s', 'any', ids('a')).kind).to.equal('deleted');
    expect(read(log, 's')).to.equal('deleted');
    expect(log.append('t', 'any', ids('a', 'b', 'c'))).to.deep.equal({ kind: 'too-large', limit: 20 });
  });
});
