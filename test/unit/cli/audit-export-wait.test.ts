import { expect } from 'chai';
import { ApiError, Unreachable } from '../../../src/cli/api-client.ts';
import { untilMade } from '../../../src/cli/audit/export-wait.ts';
import type { Export } from '../../../src/http/audit/answers.ts';
import { CliFailure } from '../../../src/cli/exit.ts';

const exportIn = (state: Export['state'], more: Partial<Export> = {}): Export => ({
  id: 'x-1',
  state,
  request: { format: 'native', audience: 'tenant', filter: {} },
  requested_by: 'u-1',
  requested_at: '2026-11-22T09:00:00.000Z',
  ...more,
});
const away = (): Unreachable => new Unreachable('cannot reach http://x: is the service running there?');
const refusal = (status: number): ApiError => new ApiError('GET', '/x', status, { detail: 'not now' }, 'r-1');

/** Looks at an export whose service answers so, one answer a look and the last one for ever; time passes in pauses alone. */
const waiting = (...answers: readonly (Export | Error)[]) => {
  let [now, looks, said] = [0, 0, ''];
  const get = <T>(): Promise<T> => {
    const answer = answers[Math.min(looks, answers.length - 1)] as Export | Error;
    looks += 1;
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as T);
  };
  const pause = (ms: number): Promise<void> => {
    now += ms;
    return Promise.resolve();
  };
  const made = untilMade({ get }, exportIn('running'), {
    target: 'mine.tar',
    waitForSeconds: 3_600,
    io: { out: () => undefined, err: (text) => (said += text) },
    clock: { now: () => now, pause },
  });
  return { made, said: () => said, now: () => now, looks: () => looks };
};
const failureOf = async ({ made }: ReturnType<typeof waiting>): Promise<CliFailure> => {
  const failed: unknown = await made.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failed instanceof CliFailure) return failed;
  throw new Error(`another end: ${String(failed)}`);
};

describe('waiting for an export', () => {
  it('goes on through a restart of the service, which is said once', async () => {
    const done = exportIn('complete', { events: 3 });
    const wait = waiting(
      exportIn('running', { events_done: 2 }),
      away(),
      refusal(503),
      refusal(502),
      away(),
      done,
    );
    expect(await wait.made).to.equal(done);
    expect(wait.said()).to.equal(
      'export x-1: running\nexport x-1: running, 2 events\nexport x-1: the service does not answer; waiting for it\n',
    );
    const twice = waiting(away(), exportIn('running'), away(), done);
    await twice.made;
    expect(twice.said().split('the service does not answer')).to.have.length(3);
  });

  it('looks again soon: who is away is back in some seconds', async () => {
    const wait = waiting(
      ...Array.from({ length: 20 }, () => exportIn('running')),
      away(),
      exportIn('complete'),
    );
    const before = waiting(...Array.from({ length: 20 }, () => exportIn('running')), exportIn('complete'));
    await Promise.all([wait.made, before.made]);
    expect(wait.now() - before.now()).to.be.at.most(1_000);
  });

  it('ends after half a minute without the service, and says how the export is had', async () => {
    const wait = waiting(exportIn('running'), away());
    const failed = await failureOf(wait);
    expect(failed.status).to.equal(4);
    expect(failed.message).to.equal(
      'cannot reach http://x: is the service running there?\n' +
        'the service makes the export all the same, once it is back: ledgerctl audit fetch x-1 -o mine.tar',
    );
    expect(wait.now()).to.be.within(30_000, 36_000);
    const busy = await failureOf(waiting(refusal(503)));
    expect([busy.status, busy.message.includes('ledgerctl audit fetch x-1 -o mine.tar')]).to.deep.equal([
      4,
      true,
    ]);
  });

  it('counts each time anew that the service is away', async () => {
    const turns = Array.from({ length: 40 }, (_, n) => (n % 8 === 7 ? exportIn('running') : away()));
    const wait = waiting(...turns, exportIn('complete'));
    expect((await wait.made).state).to.equal('complete');
    expect(wait.now()).to.be.greaterThan(31_000);
  });

  it('ends at once where the service refuses', async () => {
    const refused = refusal(403);
    const wait = waiting(refused);
    expect(await wait.made.catch((error: unknown) => error)).to.equal(refused);
    expect(wait.looks()).to.equal(1);
  });

  it('ends when its own time is up', async () => {
    const failed = await failureOf(waiting(exportIn('running')));
    expect([failed.status, failed.message]).to.deep.equal([
      4,
      'export x-1 is not made yet: ledgerctl audit fetch x-1 -o mine.tar',
    ]);
  });
});
