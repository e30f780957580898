import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { goProgram, type GoProgram } from '../../../ops/real/go-program.ts';
import { installGrpcio } from '../openapi/python-tools.ts';

/** grpcurl, as its module has it. */
export const grpcurl = (say: (line: string) => void = () => undefined): GoProgram =>
  goProgram(
    {
      sources: join(import.meta.dirname, '../grpcurl'),
      name: 'grpcurl',
      program: 'grpcurl',
      target: 'github.com/fullstorydev/grpcurl/cmd/grpcurl',
      takes: 'building grpcurl; this takes about a minute, once per machine',
    },
    say,
  );

const BUILD_MS = 600_000;

/** Runs a step of docs/clients.md. Throws Error with the end of what it said. */
const step = (folder: string, program: string, ...argv: readonly string[]): void => {
  const path = `${resolve('node_modules/.bin')}:${process.env['PATH'] ?? ''}`;
  const run = spawnSync(program, argv, {
    cwd: folder,
    encoding: 'utf8',
    timeout: BUILD_MS,
    env: { ...process.env, PATH: path },
  });
  if (run.status === 0) return;
  rmSync(folder, { recursive: true });
  const why = run.error?.message ?? run.stderr.trim().split('\n').slice(-3).join('; ');
  throw new Error(`${program} ${argv[0]}: ${why}`);
};

/** The example in Go, built as docs/clients.md says, in a folder of its own. Returns the program. */
export const buildGoExample = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-go-example-'));
  cpSync('fixtures/clients/go', folder, { recursive: true });
  step(folder, 'buf', 'generate', resolve('proto'));
  step(folder, 'go', 'build', '-buildvcs=false', '-o', 'order', '.');
  return join(folder, 'order');
};

/** The example in Python with its stubs: the words that run it, and what it needs in its environment. */
export const makePythonExample = (): { readonly words: readonly string[]; readonly stubs: string } => {
  const tools = installGrpcio();
  if ('missing' in tools) throw new Error(tools.missing);
  const stubs = mkdtempSync(join(tmpdir(), 'ledger-python-example-'));
  const python = tools.programOf('python');
  const files = globSync('proto/osac/public/v1/*.proto').map((file) => resolve(file));
  const out = ['--python_out=.', '--grpc_python_out=.'];
  step(stubs, python, '-m', 'grpc_tools.protoc', '-I', resolve('proto'), ...out, ...files);
  return { words: [python, 'fixtures/clients/python/order.py'], stubs };
};
