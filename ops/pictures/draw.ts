/**
 * `npm run pictures`: draws the pictures of the README from what really runs. `demo.svg` is a recording of the demo, `api.png` the
 * API page in a browser (Chromium must be installed).
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { startService } from '../../src/cli/demo/service-process.ts';
import { recordingOf, type Line } from './recording.ts';

const ROOT = join(import.meta.dirname, '../..');
const PICTURES = join(ROOT, 'docs/pictures');
const MAIN = join(ROOT, 'src/main.ts');
/** Time for the page's scripts to draw it. */
const DRAWN_MS = 15_000;

const recordDemo = async (): Promise<readonly Line[]> => {
  const demo = spawn(process.execPath, [MAIN, 'demo'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => {
    demo.once('close', resolve);
  });
  const started = performance.now();
  const lines: Line[] = [{ text: '$ npm run demo', at: 0 }];
  for await (const text of createInterface({ input: demo.stdout })) {
    lines.push({ text, at: performance.now() - started });
  }
  const status = await ended;
  if (status !== 0) throw new Error(`the demo ended with ${status}`);
  return lines;
};

const shootPage = async (file: string): Promise<void> => {
  const dir = mkdtempSync(join(tmpdir(), 'ledger-pictures-'));
  const service = await startService({
    command: [MAIN, 'serve'],
    environment: {
      LEDGER_DATA_DIR: join(dir, 'data'),
      LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
      LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
      LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
    },
  });
  try {
    while (!(await fetch(`${service.http}/readyz`)).ok) await pause(100);
    const { status, stderr } = spawnSync(
      'chromium',
      [
        '--headless=new',
        '--no-sandbox',
        '--disable-gpu',
        '--hide-scrollbars',
        `--user-data-dir=${join(dir, 'profile')}`,
        '--window-size=1200,900',
        `--virtual-time-budget=${DRAWN_MS}`,
        `--screenshot=${file}`,
        `${service.http}/docs`,
      ],
      { encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(`chromium ended with ${status}: ${stderr}`);
  } finally {
    await service.stop();
    rmSync(dir, { recursive: true, force: true });
  }
};

writeFileSync(join(PICTURES, 'demo.svg'), recordingOf(await recordDemo()));
await shootPage(join(PICTURES, 'api.png'));
