import { expect } from 'chai';
import { headForExport, NotSigned } from '../../../../src/app/audit/exports/export-head.ts';
import type { AuditHalt, TreeHead } from '../../../../src/app/audit/tree-heads.ts';
import type { AuditLeaf } from '../../../../src/app/audit/tree.ts';
import { headOf } from '../../../support/audit/heads.ts';
import { manualTime } from '../../../support/manual-time.ts';

const timeOf = (index: number): string => new Date(Date.UTC(2026, 0, 1, 0, index)).toISOString();

/** One leaf a minute; the export was asked for with leaf `asked`. */
describe('the head of an export', () => {
  let signed: TreeHead | undefined;
  let halt: AuditHalt | undefined;
  let size: number;
  let asked: number | undefined;
  const exported = (to?: string) => {
    const { clock, timers, pass } = manualTime();
    const stop = new AbortController();
    const answer: { head?: TreeHead; error?: unknown } = {};
    headForExport(
      'x1',
      to === undefined ? {} : { to },
      {
        tree: {
          size: () => size,
          leaf: (index) =>
            index < size ? ({ index, recordedAt: timeOf(index) } as unknown as AuditLeaf) : undefined,
          indexOf: (stream, revision) =>
            stream === 'auditExport-x1' && revision === 0 && (asked ?? size) < size ? asked : undefined,
          sizeAtTime: (time) => {
            let leaves = 0;
            while (leaves < size && timeOf(leaves) <= time) leaves += 1;
            return leaves;
          },
        },
        heads: { latest: async () => signed },
        clock,
        timers,
      },
      { withinMs: 30_000, signal: stop.signal, halted: () => halt },
    ).then(
      (found) => Object.assign(answer, { head: found }),
      (error: unknown) => Object.assign(answer, { error }),
    );
    return { answer, pass, stop };
  };
  const refusal = ({ error }: { readonly error?: unknown }): string => {
    expect(error).to.be.instanceOf(NotSigned);
    return (error as NotSigned).message;
  };
  beforeEach(() => {
    [signed, halt, size, asked] = [headOf(5), undefined, 8, 7];
  });

  it('covers all that was stored when it was asked for, and need not cover that it was', async () => {
    const { answer, pass } = exported();
    await pass(5_000);
    expect(answer).to.deep.equal({});
    signed = headOf(7);
    await pass(200);
    expect(answer.head?.size).to.equal(7);
  });

  it('is not the newest one while the tree does not know yet what was stored', async () => {
    [signed, size] = [headOf(5), 5];
    const { answer, pass } = exported();
    await pass(5_000);
    expect(answer).to.deep.equal({});
    [signed, size] = [headOf(8), 8];
    await pass(200);
    expect(answer.head?.size).to.equal(8);
  });

  it('does not come in time: there is none, and what to do is said', async () => {
    const { answer, pass } = exported();
    await pass(30_000);
    expect(refusal(answer))
      .to.include('were not signed within 30 seconds')
      .and.include('ask again later')
      .and.include("before 2026-01-01T00:04:00Z alone ('to', --to)");
    signed = undefined;
    const none = exported('2026-01-01T00:01:00.000Z');
    await none.pass(30_000);
    expect(refusal(none.answer))
      .to.include('no head of the tree has been signed yet')
      .and.not.include('--to');
  });

  it('does not come while nothing is signed: that is said at once, and why', async () => {
    halt = { at: { event: 'cluster-secret@0', position: '0000000000000003' } };
    const { answer, pass } = exported();
    await pass(0);
    expect(refusal(answer))
      .to.include('the event at position 0000000000000003 is not the one that was recorded')
      .and.include('alarmed')
      .and.not.include('secret');
    halt = { at: undefined };
    const other = exported();
    await other.pass(0);
    expect(refusal(other.answer)).to.include('is not what was signed');
  });

  it('is the newest one for what ends below it', async () => {
    halt = { at: undefined };
    for (const to of [timeOf(3), timeOf(5)]) {
      const { answer, pass } = exported(to);
      await pass(0);
      expect(answer.head?.size, to).to.equal(5);
    }
    halt = undefined;
    const late = exported(timeOf(5));
    await late.pass(29_000);
    expect(late.answer, 'a newer one may come').to.deep.equal({});
    await late.pass(1_000);
    expect(late.answer.head?.size).to.equal(5);
  });

  it('is none for what ends above it, or where more may come to the tree', async () => {
    halt = { at: undefined };
    const above = exported(new Date(Date.parse(timeOf(5)) + 1).toISOString());
    await above.pass(0);
    expect(refusal(above.answer)).to.include('are not signed');
    // The tree has stopped: what follows may be of that time.
    [size, asked] = [5, undefined];
    const stopped = exported(timeOf(5));
    await stopped.pass(0);
    expect(refusal(stopped.answer)).to.include("before 2026-01-01T00:04:00Z alone ('to', --to)");
    const advised = exported('2026-01-01T00:04:00Z');
    await advised.pass(0);
    expect(advised.answer.head?.size).to.equal(5);
  });

  it('is not waited for when the export is given up', async () => {
    const { answer, pass, stop } = exported();
    stop.abort(new Error('given up'));
    await pass(200);
    expect((answer.error as Error).message).to.equal('given up');
  });
});
