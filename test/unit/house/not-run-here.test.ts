import { globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { mustRun, notRunHere, obtained, SKIPPABLE } from '../../support/not-run-here.ts';

const HELPER = 'test/support/not-run-here.ts';

/** What a helper did to a context whose suite needs something. */
const outcomeOf = (act: (context: { skip: () => never }) => unknown) => {
  const skipped = new Error('skipped');
  const said: string[] = [];
  const { log } = console;
  console.log = (line: string) => said.push(line.trim());
  try {
    const value = act({
      skip: () => {
        throw skipped;
      },
    });
    return { value, said };
  } catch (error) {
    return { skipped: error === skipped, message: (error as Error).message, said };
  } finally {
    console.log = log;
  }
};

describe('a suite that a machine cannot run', () => {
  it('says so in one form and is skipped', () => {
    expect(
      outcomeOf((context) => notRunHere(context, 'kafka', 'there is no Java', new Set())),
    ).to.deep.include({
      skipped: true,
      said: ['not run here: kafka: there is no Java'],
    });
  });

  it('fails where LEDGER_TEST_MUST_RUN names it', () => {
    const told = outcomeOf((context) =>
      notRunHere(context, 'kafka', 'there is no Java', mustRun('rulebook, kafka')),
    );
    expect(told).to.deep.equal({
      skipped: false,
      message: "suite 'kafka' must run (LEDGER_TEST_MUST_RUN) and cannot: there is no Java",
      said: [],
    });
    expect(
      outcomeOf((context) => notRunHere(context, 'browser', 'none', mustRun('rulebook,kafka'))).skipped,
    ).to.equal(true);
  });

  it('may be one whose program cannot be installed', () => {
    const failing = (): never => {
      throw new Error('mvn: not found');
    };
    expect(outcomeOf((context) => obtained(context, 'kube-apiserver', failing))).to.deep.include({
      skipped: true,
      said: ['not run here: kube-apiserver: mvn: not found'],
    });
    expect(outcomeOf((context) => obtained(context, 'kube-apiserver', () => 7)).value).to.equal(7);
  });

  it('is known by its name: a setting that names another one is refused', () => {
    expect(() => mustRun('kafka,kafak')).to.throw(
      "LEDGER_TEST_MUST_RUN: no suite 'kafak'; use some of browser",
    );
    expect([...mustRun(SKIPPABLE.join())]).to.deep.equal([...SKIPPABLE]);
    expect([...mustRun(' ')]).to.deep.equal([]);
    const documented = [...readFileSync('CONTRIBUTING.md', 'utf8').matchAll(/^\| `([a-z-]+)` \|/gm)];
    expect(documented.map(([, name]) => name)).to.deep.equal([...SKIPPABLE]);
  });

  it('skips by that form alone', () => {
    const skipping = globSync('test/**/*.ts').filter(
      (file) =>
        file !== HELPER && /\bthis\.skip\(|\b(?:it|describe|test)\.skip\(/.test(readFileSync(file, 'utf8')),
    );
    expect(skipping).to.deep.equal([]);
  });
});
