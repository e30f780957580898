import { expect } from 'chai';
import { openStage } from '../../support/conformance/play.ts';
import { loadRecordings, loadRules, loadScenarios, stepsOf } from '../../support/conformance/scenario.ts';

const scenarios = loadScenarios();

describe('conformance with OSAC on the wire', () => {
  for (const scenario of scenarios) {
    it(`${scenario.file}: ${scenario.about}`, async function () {
      this.timeout(60_000);
      const stage = await openStage();
      const wrong: string[] = [];
      try {
        for (const { step, own } of stepsOf(scenario, scenarios)) {
          const found = await stage.play(step);
          if (found !== undefined) wrong.push(`${own ? '' : '(before) '}${step.name}: ${found}`);
        }
      } finally {
        await stage.close();
      }
      expect(wrong, wrong.join('\n')).to.deep.equal([]);
    });
  }

  const steps = scenarios.flatMap((scenario) => scenario.steps);

  it('names every step of a scenario differently', () => {
    for (const { file, steps: own } of scenarios)
      expect(new Set(own.map(({ name }) => name)).size, file).to.equal(own.length);
  });

  it('has a pair for every rule, and no pair for a rule that is not listed', () => {
    const rules = loadRules();
    const shown = new Set(steps.flatMap((step) => step.rules ?? []));
    expect(
      [...rules.keys()].filter((rule) => !shown.has(rule)),
      'rules without a pair',
    ).to.deep.equal([]);
    expect(
      [...shown].filter((rule) => !rules.has(rule)),
      'unknown rules',
    ).to.deep.equal([]);
  });

  it('repeats every recorded exchange, or says why not', () => {
    const recordings = loadRecordings();
    const repeated = new Set(steps.flatMap((step) => step.wire ?? []));
    const missing = [...recordings].filter(([name, reason]) => reason === null && !repeated.has(name));
    expect(
      missing.map(([name]) => name),
      'recordings without a pair',
    ).to.deep.equal([]);
    expect(
      [...repeated].filter((name) => !recordings.has(name)),
      'unknown recordings',
    ).to.deep.equal([]);
  });
});
