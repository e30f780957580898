/** `npm run bench -- <name> [arguments]`: runs one benchmark of this folder and prints machine, settings and ranges. */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { basename, join } from 'node:path';

const names = globSync(join(import.meta.dirname, '*.ts'))
  .map((file) => basename(file, '.ts'))
  .filter((name) => name !== 'run')
  .toSorted();

const [name, ...rest] = process.argv.slice(2);
if (name === undefined || !names.includes(name)) {
  process.stderr.write(`usage: npm run bench -- <name> [arguments]\nbenchmarks: ${names.join(', ')}\n`);
  process.exitCode = 2;
} else {
  const file = join(import.meta.dirname, `${name}.ts`);
  process.exitCode = spawnSync(process.execPath, [file, ...rest], { stdio: 'inherit' }).status ?? 1;
}
