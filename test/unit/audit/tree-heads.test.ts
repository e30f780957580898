import { expect } from 'chai';
import { headWhen, type AuditHeads, type TreeHead } from '../../../src/app/audit/tree-heads.ts';
import { headOf } from '../../support/audit/heads.ts';
import { manualTime } from '../../support/manual-time.ts';

describe('waiting for a signed head', () => {
  let signed: TreeHead | undefined;
  const heads: Pick<AuditHeads, 'latest'> = { latest: async () => signed };
  let halted = false;
  const asked = (enough: number, withinMs: number) => {
    const { clock, timers, pass } = manualTime();
    const stop = new AbortController();
    const answer: { value?: TreeHead | undefined; error?: unknown; done?: boolean } = {};
    headWhen({ heads, clock, timers }, ({ size }) => size >= enough, {
      withinMs,
      signal: stop.signal,
      halted: () => halted,
    }).then(
      (value) => Object.assign(answer, { value, done: true }),
      (error: unknown) => Object.assign(answer, { error, done: true }),
    );
    return { answer, pass, stop };
  };
  beforeEach(() => {
    signed = undefined;
    halted = false;
  });

  it('ends with the first one that is enough', async () => {
    const { answer, pass } = asked(5, 10_000);
    signed = headOf(4);
    await pass(3_000);
    expect(answer).to.deep.equal({});
    signed = headOf(6);
    await pass(200);
    expect(answer.value?.size).to.equal(6);
  });

  it('ends in time with the newest one all the same, or with none', async () => {
    const none = asked(5, 1_000);
    await none.pass(1_000);
    expect(none.answer).to.deep.equal({ value: undefined, done: true });
    signed = headOf(4);
    const older = asked(5, 0);
    await older.pass(0);
    expect(older.answer.value?.size).to.equal(4);
  });

  it('ends once no other one will come', async () => {
    for (const newest of [undefined, headOf(4)]) {
      signed = newest;
      halted = false;
      const { answer, pass } = asked(5, 10_000);
      await pass(3_000);
      expect(answer).to.deep.equal({});
      halted = true;
      await pass(200);
      expect(answer).to.deep.equal({ value: newest, done: true });
    }
  });

  it('ends as soon as nobody wants it any more', async () => {
    const { answer, pass, stop } = asked(5, 10_000);
    await pass(500);
    stop.abort(new Error('gone'));
    await pass(0);
    expect(answer.error).to.have.property('message', 'gone');
  });
});
