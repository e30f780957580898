import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { freePorts } from '../../ops/real/free-ports.ts';

const MAIN = join(import.meta.dirname, '../../ops/real/kafka/main.ts');

/** The broker that the documents tell people to start. */
describe('ops/real/kafka/main.ts', function () {
  this.timeout(120_000);
  let child: ChildProcess | undefined;
  afterEach(() => {
    child?.kill('SIGTERM');
  });
  const childrenOf = (pid: number): readonly number[] =>
    spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
      .stdout.trim()
      .split(/\s+/)
      .filter((each) => each !== '')
      .map(Number);

  it('says what it takes, and refuses what it does not know', () => {
    const run = (...argv: string[]) => spawnSync(process.execPath, [MAIN, ...argv], { encoding: 'utf8' });
    expect(run('--help')).to.include({ status: 0 });
    expect(run('--help').stdout).to.include('--port').and.include('--user');
    for (const argv of [['--port', 'x'], ['--port', '70000'], ['--user', 'nameless'], ['--what']])
      expect(run(...argv).status, argv.join(' ')).to.equal(2);
  });

  it('listens where it is told, and when the broker dies says so and ends with 1', async () => {
    const [port = 0] = await freePorts(1);
    const started = spawn(process.execPath, [MAIN, '--port', String(port)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child = started;
    const said = text(started.stderr);
    const ended = new Promise<number | null>((resolve) => started.once('exit', resolve));
    const [line] = await Promise.race([
      createInterface({ input: started.stdout })
        [Symbol.asyncIterator]()
        .next()
        .then(({ value }) => [String(value)]),
      ended.then(async (code) => Promise.reject(new Error(`it ended with ${code}: ${await said}`))),
    ]);
    expect(JSON.parse(line ?? '')).to.deep.equal({ brokers: [`127.0.0.1:${port}`], secureBrokers: [] });
    const taken = spawnSync(process.execPath, [MAIN, '--port', String(port)], { encoding: 'utf8' });
    expect([taken.status, taken.stderr]).to.deep.equal([
      1,
      `no Kafka here: port ${port} cannot be had: is something running there?\n`,
    ]);
    const [broker = 0] = childrenOf(started.pid ?? 0);
    process.kill(broker, 'SIGKILL');
    expect(await ended).to.equal(1);
    expect(await said).to.include('Kafka has ended by itself: SIGKILL');
  });
});
