/**
 * First start of an instance, without files, on an EventStoreDB that is full: seconds until it is ready, events of the log
 * per second, processor time and memory. On the protocol peer, or the server of LEDGER_TEST_EVENTSTOREDB, whose log keeps what
 * is written. Arguments: [events, 100000] [roles, api,processes,publisher,auditor].
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createEventStoreDbStore } from '../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { startService } from '../../src/cli/demo/service-process.ts';
import { EVENTSTOREDB, openEventStoreDb } from './support/event-store.ts';
import { EVENTS_PER_ORDER, writeOrders } from './support/order-history.ts';
import { peakMb, printMachine, processorMs, residentMb } from './support/report.ts';

const wanted = Number(process.argv[2] ?? 100_000);
const roles = process.argv[3] ?? 'api,processes,publisher,auditor';
const MAIN = join(import.meta.dirname, '../../src/main.ts');

printMachine({ store: EVENTSTOREDB, roles });
const { connectionString, stop } = await openEventStoreDb();
const dataDir = mkdtempSync(join(tmpdir(), 'ledger-bench-'));
try {
  const store = await createEventStoreDbStore({ connectionString, instance: 'bench' });
  const events = await writeOrders(store, Math.ceil(wanted / EVENTS_PER_ORDER));
  await store.close();
  const began = performance.now();
  const service = await startService({
    command: [MAIN, 'serve'],
    environment: {
      LEDGER_DATA_DIR: dataDir,
      LEDGER_EVENT_STORE: connectionString,
      LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
      LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
      LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
      LEDGER_ROLES: roles,
      LEDGER_LOG_LEVEL: 'warn',
    },
  });
  const listening = (performance.now() - began) / 1000;
  while ((await fetch(`${service.http}/readyz`)).status !== 200) await pause(100);
  const ready = (performance.now() - began) / 1000;
  const used = processorMs(service.pid);
  console.log(
    `events ${events}; listening after ${listening.toFixed(1)} s, ready after ${ready.toFixed(1)} s, ` +
      `${(events / ready).toFixed(0)} events/s, ${((1000 * used) / events).toFixed(0)} µs of processor time per event, ` +
      `${residentMb(service.pid).toFixed(0)} MB resident, ${peakMb(service.pid).toFixed(0)} MB at most`,
  );
  await service.stop();
} finally {
  await stop();
  rmSync(dataDir, { recursive: true, force: true });
}
