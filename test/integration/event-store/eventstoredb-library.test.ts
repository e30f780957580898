import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';

/**
 * Why the adapter has a batch writer of its own (src/adapters/event-store/eventstoredb/batch-writer.ts). When this
 * fails after an update of the library, its own `appendToStream` may have become usable.
 */
describe('@eventstore/db-client: appendToStream', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  const run = async (script: string, connectionString: string): Promise<string> => {
    const library = JSON.stringify(import.meta.resolve('@eventstore/db-client'));
    const child = promisify(execFile)(
      process.execPath,
      ['--input-type=module', '-e', `import esdb from ${library};\n${script}`, connectionString],
      { timeout: 15_000 },
    );
    return (await child).stdout;
  };

  it('raises unhandled rejections, fatal by default, when the connection breaks while writes are queued', async () => {
    const peer = await bench.peer();
    const script = `
      let unhandled = 0;
      process.on('unhandledRejection', () => { unhandled += 1; });
      const client = esdb.EventStoreDBClient.connectionString(process.argv[1]);
      const event = () => esdb.jsonEvent({ type: 'Loaded', data: { text: 'x'.repeat(20000) } });
      await client.appendToStream('first', event());
      for (let n = 0; n < 400; n += 1) client.appendToStream('load-' + n, event()).catch(() => undefined);
      for (let i = 0; i < 1000 && unhandled === 0; i += 1) await new Promise((r) => setTimeout(r, 10));
      process.stdout.write(String(unhandled));
      process.exit(0);`;
    peer.faults.add({ on: 'append', do: { kind: 'cut' }, stream: 'load-', times: 1 });
    expect(Number(await run(script, peer.connectionString))).to.be.greaterThan(0);
  });

  it('B1: reports revision 1 for any actual revision when exceptions are off', async () => {
    const peer = await bench.peer();
    const script = `
      const client = esdb.EventStoreDBClient.connectionString(process.argv[1] + '&throwOnAppendFailure=false');
      const event = () => esdb.jsonEvent({ type: 'Placed', data: {} });
      await client.appendToStream('order-1', Array.from({ length: 6 }, event));
      const result = await client.appendToStream('order-1', event(), { expectedRevision: 2n });
      process.stdout.write(String(result.nextExpectedRevision));
      process.exit(0);`;
    expect(await run(script, peer.connectionString)).to.equal('1');
  });
});
