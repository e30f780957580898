import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';

describe('message shapes', () => {
  it('generated files are those of the shapes and kinds: npm run generate gives the same', () => {
    const directory = mkdtempSync(join(tmpdir(), 'ledger-generate-'));
    try {
      const template = parse(readFileSync('buf.gen.yaml', 'utf8')) as { plugins: { out: string }[] };
      const plugins = template.plugins.map((plugin) => ({ ...plugin, out: directory }));
      const file = join(directory, 'template.yaml');
      writeFileSync(file, stringify({ ...template, plugins }));
      execFileSync(join('node_modules', '.bin', 'buf'), ['generate', '--template', file], { stdio: 'pipe' });
      rmSync(file);
      execFileSync(process.execPath, ['ops/generate.ts', directory], { stdio: 'pipe' });
      const filesIn = (root: string): string[] =>
        readdirSync(root, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
          .toSorted();
      const fresh = filesIn(directory);
      expect(fresh).to.deep.equal(filesIn('src/gen'));
      for (const name of fresh)
        expect(
          readFileSync(join(directory, name), 'utf8') === readFileSync(join('src/gen', name), 'utf8'),
          `run npm run generate: ${name}`,
        ).to.equal(true);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('shapes keep the lint rules of buf', () => {
    execFileSync(join('node_modules', '.bin', 'buf'), ['lint'], { stdio: 'pipe' });
  });
});
