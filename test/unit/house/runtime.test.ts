import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { SERVICE_NODE_OPTIONS } from '../../../src/cli/demo/service-process.ts';

const ROOT = join(import.meta.dirname, '../../..');

describe('runtime', () => {
  it('is the Node version that the lock file brings, not whatever the machine has', () => {
    expect(process.version).to.match(/^v24\./);
  });

  it('says which Node it needs where another one starts it', () => {
    const older = 'Object.defineProperty(process, "versions", { value: { node: "20.20.2" } })';
    const argv = ['--import', `data:text/javascript,${older}`, join(ROOT, 'src/ledgerctl.js'), '--version'];
    const { status, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8' });
    expect(stderr).to.match(/^Node 24 or later is needed, and this is 20\.20\.2: .+\n$/);
    expect(status).to.equal(1);
    const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { engines: object };
    expect(engines).to.deep.equal({ node: '>=24' });
    // A name that an older Node lacks fails before the sentence.
    const entry = readFileSync(join(ROOT, 'src/ledgerctl.js'), 'utf8');
    expect(entry).not.to.match(/import \{[^}]*\} from 'node:module'/);
  });

  it('starts the service with the same options however it is started', () => {
    const options = SERVICE_NODE_OPTIONS.join(' ');
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    expect(scripts['start']).to.equal(`exec node ${options} src/ledgerctl.js serve`);
    for (const file of ['src/main.ts', 'src/ledgerctl.js']) {
      const [shebang] = readFileSync(join(ROOT, file), 'utf8').split('\n');
      expect(shebang, file).to.equal(`#!/usr/bin/env -S node ${options}`);
    }
  });
});
