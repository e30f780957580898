/**
 * `npm run trace`: the files of `src` that one `POST /clusters` runs through on the HTTP thread, from the socket to its answer, with
 * the functions of each. The service runs in this process with the role `api` alone; everything was called before, so that what is
 * done once (a schema that is compiled, a catalogue that is read) is left out.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { startService } from '../../src/composition/service.ts';
import { readConfig } from '../../src/config.ts';

const ROOT = join(import.meta.dirname, '../..');
const WARM_UP = 20;

const dir = mkdtempSync(join(tmpdir(), 'ledger-trace-'));
const environment = {
  LEDGER_DATA_DIR: join(dir, 'data'),
  LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
  LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
  LEDGER_CATALOG: join(ROOT, 'fixtures/catalog'),
  LEDGER_ROLES: 'api',
};
const service = await startService(readConfig(environment), {
  logger: pino({ level: 'silent' }),
  nodeEnv: undefined,
  announce: () => undefined,
});
try {
  while (!(await fetch(`${service.http}/readyz`)).ok);
  const token = execFileSync(
    process.execPath,
    [join(ROOT, 'src/main.ts'), 'token', '--tenant', 'acme', '--user', 'trace'],
    { encoding: 'utf8', env: { ...process.env, ...environment } },
  ).trim();
  const post = async (name: string): Promise<void> => {
    const answer = await fetch(`${service.http}/api/fulfillment/v1/clusters`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'idempotency-key': `"${name}"` },
      body: JSON.stringify({ metadata: { name }, spec: { template: { id: 'osac.templates.ocp_small' } } }),
    });
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
    await answer.arrayBuffer();
  };
  for (let n = 0; n < WARM_UP; n += 1) await post(`warm-${n}`);

  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await session.post('Profiler.takePreciseCoverage');
  await post('traced');
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();

  const ran = result
    .filter(({ url }) => url.startsWith(`file://${ROOT}/src/`))
    .map(({ url, functions }) => ({
      file: url.slice(`file://${ROOT}/`.length),
      functions: functions.filter(({ ranges: [range] }) => (range?.count ?? 0) > 0),
    }))
    .filter(({ functions }) => functions.length > 0)
    .toSorted((a, b) => a.file.localeCompare(b.file));
  for (const { file, functions } of ran) {
    const names = [...new Set(functions.map(({ functionName }) => functionName))].filter(
      (name) => name !== '',
    );
    console.log(`${file.padEnd(56)} ${names.join(', ')}`);
  }
  const rooms = Object.entries(Object.groupBy(ran, ({ file }) => file.split('/')[1] ?? ''));
  console.log(
    `\n${ran.length} files: ${rooms.map(([room, files]) => `${files?.length} ${room}`).join(', ')}`,
  );
} finally {
  await service.stop();
  rmSync(dir, { recursive: true, force: true });
}
