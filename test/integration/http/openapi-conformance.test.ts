import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { openStage, type Seen } from '../../support/conformance/play.ts';
import { loadScenarios, stepsOf } from '../../support/conformance/scenario.ts';
import { callerOf, startTestService } from '../../support/http-service.ts';
import { openApi, type OpenApi } from '../../support/openapi/document.ts';

const VERBS = ['get', 'post', 'patch', 'delete'];

/** Every answer of the conformance scenarios, right and refused, and every line of their watches. */
describe('answers of the conformance scenarios fit the OpenAPI document', () => {
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

  const problemOf = ({ method, path, ...answer }: Seen): string | undefined => {
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

  const scenarios = loadScenarios();
  for (const scenario of scenarios)
    it(scenario.file, async function () {
      this.timeout(60_000);
      const problems: string[] = [];
      let answers = 0;
      const stage = await openStage((seen) => {
        answers += 1;
        const problem = problemOf(seen);
        if (problem !== undefined) problems.push(problem);
      });
      try {
        for (const { step } of stepsOf(scenario, scenarios)) await stage.play(step);
      } finally {
        await stage.close();
      }
      expect(problems).to.deep.equal([]);
      expect(answers).to.be.greaterThan(0);
    });
});
