import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { openStage, type Seen } from '../../support/conformance/play.ts';
import { loadRecordings, loadRules, loadScenarios, stepsOf } from '../../support/conformance/scenario.ts';
import { callerOf, startTestService } from '../../support/http/service.ts';
import { openApi, type OpenApi } from '../../support/openapi/document.ts';

const scenarios = loadScenarios();
const VERBS = ['get', 'post', 'patch', 'delete'];

describe('conformance with OSAC on the wire', () => {
  let api: OpenApi;
  before(async () => {
    const service = await startTestService();
    const { json } = await callerOf(service)('GET', '/openapi.json');
    api = openApi(json as unknown as JsonObject);
    await service.close();
  });

  /** What calls that the document does not tell of are answered: no such path, or a verb that the path lacks. */
  const notThere = (path: string): number =>
    VERBS.some((verb) => api.find(verb, path) !== undefined) ? 501 : 404;

  /** How an answer does not fit the OpenAPI document. */
  const misfitOf = ({ method, path, ...answer }: Seen): string | undefined => {
    // The same answer without its body.
    if (method === 'HEAD' || method === 'OPTIONS') return undefined;
    const told = api.find(method, path) !== undefined;
    const problems = told
      ? api.answerProblems(method, path, answer)
      : answer.status === notThere(path)
        ? []
        : ['not in the document'];
    return problems.length === 0 ? undefined : `${method} ${path} ${answer.status}: ${problems.join(', ')}`;
  };

  // Each scenario is played once; its answers are held against what OSAC answers and, right or refused, with every
  // line of its watches, against the OpenAPI document.
  for (const scenario of scenarios) {
    it(`${scenario.file}: ${scenario.about}`, async function () {
      this.timeout(60_000);
      const misfits: string[] = [];
      let answers = 0;
      const stage = await openStage((seen) => {
        answers += 1;
        const misfit = misfitOf(seen);
        if (misfit !== undefined) misfits.push(misfit);
      });
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
      expect(misfits, 'answers that do not fit the OpenAPI document').to.deep.equal([]);
      expect(answers).to.be.greaterThan(0);
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
