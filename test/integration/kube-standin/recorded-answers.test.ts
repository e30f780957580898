import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { kubeClient, type KubeAnswer, type KubeClient } from '../../support/kube-client.ts';
import {
  GAP_PATCHES,
  SPEC,
  VALIDATION_REQUESTS,
  order,
  ordersOf,
} from '../../support/kube-conformance/requests.ts';

type Recorded = {
  readonly case: string;
  readonly code: number | '2xx';
  readonly body?: JsonObject | string;
  readonly name?: string;
  readonly spec?: JsonObject | null;
};

const fixture = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`../../../fixtures/operator/${name}`, import.meta.url), 'utf8')) as T;

const NAMESPACE = 'osac-hub';

describe('the stand-in answers as the recorded API server did', () => {
  const recorded = fixture<readonly Recorded[]>('31-validation-answers.json');
  let server: KubeApiServer;
  let client: KubeClient;
  before(async () => {
    server = await startKubeApiServer({ namespaces: [NAMESPACE] });
    client = kubeClient({ url: server.url, ca: server.ca, token: server.adminToken });
  });
  after(async () => {
    client.close();
    await server.close();
  });

  it('has a request for every recorded case', () => {
    expect([...VALIDATION_REQUESTS.keys()]).to.deep.equal(recorded.map((one) => one.case));
  });

  for (const one of recorded) {
    it(one.case, async () => {
      const send = VALIDATION_REQUESTS.get(one.case);
      if (send === undefined) throw new Error('no request for this case');
      const answer = await send(client, NAMESPACE);
      if (one.code === '2xx') expectAccepted(answer, one);
      else expectRefused(answer, one.code, one.body ?? {});
    });
  }

  it('leaves the same gaps in immutability', async () => {
    const path = `${ordersOf(NAMESPACE)}/ord-jbase1`;
    await client.post(
      ordersOf(NAMESPACE),
      order('ord-jbase1', { ...SPEC, networkAttachment: { subnetRef: 'a' } }),
    );
    for (const [step, code, outcome] of fixture<[string, number, JsonValue][]>('32-immutability-gaps.json')) {
      const answer = await client.merge(path, GAP_PATCHES.get(step) ?? {});
      expect(answer.code, step).to.equal(code);
      const shown = code === 200 ? (answer.body['spec'] ?? null) : answer.body['message'];
      expect(shown, step).to.deep.equal(outcome);
    }
  });
});

const expectAccepted = (answer: KubeAnswer, { name, spec }: Recorded): void => {
  expect(answer.code, answer.text).to.be.within(200, 201);
  expect((answer.body['metadata'] as JsonObject)['name']).to.equal(name);
  expect(answer.body['spec'] ?? null).to.deep.equal(spec ?? null);
};

/** The whole body; only the order of causes is not fixed (real-servers.md §3.5). */
const expectRefused = (answer: KubeAnswer, code: number, body: JsonObject | string): void => {
  expect(answer.code, answer.text).to.equal(code);
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
