import canonicalize from 'canonicalize';
import { expect } from 'chai';
import { createHash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { differencesBetween, digestOf } from '../../../src/projections/runner/digest.ts';
import { openViewFile } from '../../../src/projections/runner/view-file.ts';
import type { View } from '../../../src/projections/view.ts';

const VIEW: View = {
  name: 'digested',
  version: 1,
  schema: `
    CREATE TABLE zoo (b TEXT, a INTEGER, "Ä" TEXT, PRIMARY KEY (b, a)) STRICT;
    CREATE TABLE ark (id BLOB PRIMARY KEY, n REAL, t TEXT) STRICT, WITHOUT ROWID;
  `,
  tables: ['zoo', 'ark'],
  rowsBelongToOneStream: true,
  open: () => () => {},
};

describe('digest of a view', () => {
  let db: DatabaseSync;
  beforeEach(() => {
    db = openViewFile(':memory:', VIEW, 'store');
    db.exec(`INSERT INTO zoo VALUES ('z', 2, 'quote " and \\'), ('a', 10, NULL), ('z', 1, 'é€𝄞')`);
    db.prepare('INSERT INTO ark VALUES (?, ?, ?)').run(Buffer.from([0, 255]), 0.1, '\u0001');
  });
  afterEach(() => db.close());

  it('is SHA-256 over tables by name and rows by primary key in canonical JSON (RFC 8785)', () => {
    const lines = [
      'ark',
      canonicalize({ id: '00FF', n: 0.1, t: '\u0001' }),
      'zoo',
      canonicalize({ b: 'a', a: 10, Ä: null }),
      canonicalize({ b: 'z', a: 1, Ä: 'é€𝄞' }),
      canonicalize({ b: 'z', a: 2, Ä: 'quote " and \\' }),
    ];
    const expected = createHash('sha256')
      .update(lines.map((line) => `${line}\n`).join(''))
      .digest('hex');
    expect(digestOf(db, VIEW)).to.deep.equal({ position: undefined, digest: expected, rows: 4 });
  });

  it('does not depend on the order of writing', () => {
    const other = openViewFile(':memory:', VIEW, 'another store');
    other.prepare('INSERT INTO ark VALUES (?, ?, ?)').run(Buffer.from([0, 255]), 0.1, '\u0001');
    other.exec(`INSERT INTO zoo VALUES ('z', 1, 'é€𝄞'), ('z', 2, 'x'), ('a', 10, NULL)`);
    expect(digestOf(other, VIEW).digest).not.to.equal(digestOf(db, VIEW).digest);
    other.prepare(`UPDATE zoo SET "Ä" = 'quote " and \\' WHERE b = 'z' AND a = 2`).run();
    expect(digestOf(other, VIEW)).to.deep.equal(digestOf(db, VIEW));
    other.close();
  });

  it('names the first differing rows', () => {
    const other = openViewFile(':memory:', VIEW, 'store');
    other.exec(`INSERT INTO zoo VALUES ('z', 2, 'changed'), ('b', 10, NULL), ('z', 1, 'é€𝄞')`);
    expect(differencesBetween(db, other, VIEW, 10)).to.deep.equal([
      'ark ["00FF"]: only in the live copy',
      'zoo ["a",10]: only in the live copy',
      'zoo ["b",10]: only in the rebuilt copy',
      'zoo ["z",2]: differs in Ä (live "quote \\" and \\\\", rebuilt "changed")',
    ]);
    expect(differencesBetween(db, other, VIEW, 2)).to.have.length(2);
    expect(differencesBetween(db, db, VIEW, 10)).to.deep.equal([]);
    other.close();
  });
});
