import { expect } from 'chai';
import type { Logger } from '../../../src/app/ports.ts';
import { runInBackground, sayWhatIdles } from '../../../src/composition/background.ts';
import { createClosers } from '../../../src/composition/closers.ts';
import { readConfig } from '../../../src/config.ts';
import { silentLogger } from '../../support/loggers.ts';

describe('what was opened', () => {
  it('is closed in the opposite order, all of it, and the first fault is told at the end', async () => {
    const closed: string[] = [];
    const { push, closeAll } = createClosers();
    push(() => void closed.push('store'));
    push(async () => {
      closed.push('processes');
      throw new Error('processes do not stop');
    });
    push(() => {
      closed.push('listener');
      throw new Error('listener does not stop');
    });
    const error = await closeAll().catch((fault: unknown) => fault);
    expect(closed).to.deep.equal(['listener', 'processes', 'store']);
    expect(error).to.have.property('message', 'listener does not stop');
    await closeAll();
    expect(closed, 'once').to.have.length(3);
  });
});

describe('parts that run in the background', () => {
  const until = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  /** `processes` is how the processes run; all other parts run until they are told to stop. */
  const start = (signal: AbortSignal, processes: (signal: AbortSignal) => Promise<void>) =>
    runInBackground(
      {
        system: { runRegistries: until, runProcesses: processes, auditing: undefined } as never,
        publisher: undefined,
        refusals: { run: until } as never,
        suspects: { run: until },
        auditApi: undefined,
      },
      ['api', 'processes'],
      signal,
      silentLogger,
    );
  const outcome = (broken: Promise<never>): Promise<unknown> =>
    Promise.race([
      broken.catch((error: unknown) => String(error)),
      new Promise((resolve) => setImmediate(() => resolve('runs'))),
    ]);

  it('end in silence when they are told to', async () => {
    const stop = new AbortController();
    const { broken, ended } = start(stop.signal, until);
    expect(await outcome(broken)).to.equal('runs');
    stop.abort();
    await ended;
    expect(await outcome(broken)).to.equal('runs');
  });

  it('take the service down when one breaks, or ends by itself: nothing looks alive and does nothing', async () => {
    const stop = new AbortController();
    const fault = start(stop.signal, () => Promise.reject(new Error('a bug')));
    expect(await outcome(fault.broken)).to.equal('Error: processes broke down');
    const silence = start(stop.signal, () => Promise.resolve());
    expect(await outcome(silence.broken)).to.equal('Error: processes ended by itself');
    stop.abort();
    await Promise.all([fault.ended, silence.ended]);
  });

  it('that have nothing to do by default say so once, and it is no warning', () => {
    const said = (environment: Readonly<Record<string, string>>): readonly string[] => {
      const lines: string[] = [];
      const logger: Logger = { ...silentLogger, info: (_fields, message) => void lines.push(message) };
      sayWhatIdles(readConfig(environment), logger);
      return lines;
    };
    expect(said({})).to.deep.equal(['role publisher idles: no LEDGER_KAFKA_BROKERS are set']);
    expect(said({ LEDGER_KAFKA_BROKERS: 'kafka:9092' })).to.deep.equal([]);
    expect(said({ LEDGER_ROLES: 'api' })).to.deep.equal([]);
  });
});
