import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { OutcomeUnknown } from '../../../src/app/log/event-store.ts';
import { createBench, event, rejection } from '../../support/eventstoredb-peer/fixture.ts';

/** The peer as its own process, as end-to-end tests use it: two instances of a store, faults over HTTP, SIGSTOP. */
describe('protocol peer: as a process', () => {
  const bench = createBench();
  let child: ChildProcess | undefined;
  let [connectionString, control] = ['', ''];

  beforeEach(async () => {
    const main = fileURLToPath(import.meta.resolve('../../support/eventstoredb-peer/main.ts'));
    const started = spawn(process.execPath, [main], { stdio: ['ignore', 'pipe', 'inherit'] });
    child = started;
    const [line] = (await once(createInterface(started.stdout), 'line')) as [string];
    ({ connectionString, control } = JSON.parse(line) as { connectionString: string; control: string });
  });
  afterEach(async () => {
    await bench.clean();
    child?.kill('SIGKILL');
  });
  const command = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${control}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body) }),
    });
    expect(response.status, `${method} ${path}`).to.equal(200);
    return response.json();
  };

  it('serves two instances, misbehaves when it is told to, and ends when it is told to', async () => {
    const [one, two] = [await bench.store(connectionString), await bench.store(connectionString)];
    expect(one.storeId).to.equal(two.storeId);
    await command('POST', '/faults', {
      on: 'append',
      stream: 'order-',
      times: 1,
      do: { kind: 'lose-answer', cut: true },
    });
    const placed = event('Placed');
    expect(await one.append('order-1', 'no_stream', [placed])).to.include({ duplicate: true });
    expect(await two.append('order-1', 0, [event('Paid')])).to.include({ revision: 1 });
    expect(await command('GET', '/events?stream=order-1')).to.have.nested.property('[0].id', placed.id);
    expect(await command('GET', '/stats')).to.include({ faultsHit: 1 });
    await command('POST', '/down');
    await rejection(one.ping());
    await command('POST', '/restart');
    await one.ping();
    expect((await fetch(`${control}/nonsense`)).status).to.equal(404);
    const ended = once(child as ChildProcess, 'exit');
    await command('POST', '/stop');
    expect(await ended).to.deep.equal([0, null]);
  });

  it('that is stopped in the middle leaves the outcome unknown; going on settles it', async () => {
    const store = await bench.store(connectionString, { deadlineMs: 400 });
    await store.append('order-1', 'no_stream', [event('Placed')]);
    child?.kill('SIGSTOP');
    const paid = event('Paid');
    expect(await rejection(store.append('order-1', 0, [paid]))).to.be.instanceOf(OutcomeUnknown);
    child?.kill('SIGCONT');
    const settled = await store.append('order-1', 0, [paid], { deadlineMs: 5000 });
    expect(settled).to.include({ revision: 1 });
    expect(await command('GET', '/events?stream=order-1')).to.have.lengthOf(2);
  });
});
