import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { SERVICE_NODE_OPTIONS } from '../../../src/cli/demo/service-process.ts';

const ROOT = join(import.meta.dirname, '../../..');

describe('runtime', () => {
  it('is the Node version that the lock file brings, not whatever the machine has', () => {
    expect(process.version).to.match(/^v24\./);
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
