import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import type { KubeAnswer } from '../kube-apiserver/client.ts';
import { expectCode, metaOf, type Behaviour } from './context.ts';
import { GAP_PATCHES, SPEC, VALIDATION_REQUESTS, order } from './requests.ts';

type Recorded = {
  readonly case: string;
  readonly code: number | '2xx';
  readonly body?: JsonObject | string;
  readonly name?: string;
  readonly spec?: JsonObject | null;
};

const fixture = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`../../../fixtures/operator/${name}`, import.meta.url), 'utf8')) as T;

const ANSWERS = fixture<readonly Recorded[]>('31-validation-answers.json');
const GAPS = fixture<readonly (readonly [string, number, JsonValue])[]>('32-immutability-gaps.json');

/** The recorded answers to wrong and odd requests, in their order: some build on the ones before. */
const answers: readonly Behaviour[] = ANSWERS.map((recorded) => ({
  name: `as recorded: ${recorded.case}`,
  check: async ({ admin, namespace }) => {
    const send = VALIDATION_REQUESTS.get(recorded.case);
    if (send === undefined) throw new Error('no request for this case');
    const answer = await send(admin, namespace);
    if (recorded.code === '2xx') expectAccepted(answer, recorded);
    else expectRefused(answer, recorded.code, recorded.body ?? {});
  },
}));

const gaps: Behaviour = {
  name: 'as recorded: the ways round immutability',
  check: async ({ admin, orders }) => {
    const made = order('ord-jbase1', { ...SPEC, networkAttachment: { subnetRef: 'a' } });
    expectCode(await admin.post(orders, made), 201);
    for (const [step, code, outcome] of GAPS) {
      const answer = await admin.merge(`${orders}/ord-jbase1`, GAP_PATCHES.get(step) ?? {});
      expectCode(answer, code);
      const shown = code === 200 ? (answer.body['spec'] ?? null) : answer.body['message'];
      expect(shown, step).to.deep.equal(outcome);
    }
  },
};

export const RECORDED: readonly Behaviour[] = [...answers, gaps];

const expectAccepted = (answer: KubeAnswer, { name, spec }: Recorded): void => {
  expect(answer.code, answer.text).to.be.within(200, 201);
  expect(metaOf(answer.body)['name']).to.equal(name);
  expect(answer.body['spec'] ?? null).to.deep.equal(spec ?? null);
};

/** The whole body; only the order of causes is not fixed. */
const expectRefused = (answer: KubeAnswer, code: number, body: JsonObject | string): void => {
  expectCode(answer, code);
  if (typeof body === 'string') expect(answer.text).to.equal(body);
  else expect(comparable(answer.body)).to.deep.equal(comparable(body));
};

const comparable = (body: JsonObject): JsonObject => {
  const details = body['details'] as JsonObject | undefined;
  const causes = details?.['causes'] as JsonObject[] | undefined;
  if (details === undefined || causes === undefined) return body;
  const sorted = causes.toSorted((a, b) =>
    JSON.stringify(a['field']) < JSON.stringify(b['field']) ? -1 : 1,
  );
  const { message, ...rest } = body;
  const words = sorted.length === 1 ? { message: message ?? '' } : {};
  return { ...rest, ...words, details: { ...details, causes: sorted } };
};
