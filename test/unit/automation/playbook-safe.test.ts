import { expect } from 'chai';
import { playbookSafe } from '../../../src/adapters/automation/playbook-safe.ts';
import { AutomationError } from '../../../src/app/automation/automation.ts';
import type { JsonObject } from '../../../src/domain/json.ts';

const refusal = (order: JsonObject): string => {
  try {
    playbookSafe(order);
  } catch (error) {
    if (error instanceof AutomationError && error.kind === 'invalid') return error.message;
    throw error;
  }
  throw new Error('it was taken');
};

describe('an order for playbooks', () => {
  for (const [where, spec] of [
    ['spec.releaseImage', { releaseImage: 'quay.io/{{ lookup("pipe","id") }}:1' }],
    ['spec.sshPublicKey', { sshPublicKey: '{% set x = 1 %}' }],
    ['spec.pullSecret', { pullSecret: '{"auths":{"{# c #}":{}}}' }],
    [
      'spec.nodeRequests[1].resourceClass',
      { nodeRequests: [{ resourceClass: 'a' }, { resourceClass: '{{a}}' }] },
    ],
    ['spec.templateParameters', { templateParameters: "#jinja2: variable_start_string:'[%'\n[% 1 %]" }],
    ['spec.templateParameters.a.b[0]', { templateParameters: String.raw`{"a":{"b":["\u007b{ 1 }}"]}}` }],
    ['the name of a field in spec', { '{{ 1 }}': 'x' }],
  ] as const) {
    it(`is refused for a template in ${where}, without repeating it`, () => {
      const message = refusal({ kind: 'ClusterOrder', spec } as JsonObject);
      expect(message).to.include(where).and.not.include('lookup').and.not.include('auths');
    });
  }

  it('is what it was when there is no template in it', () => {
    const order: JsonObject = {
      metadata: { name: 'order-a', annotations: { a: '{"b":{"c":1}}' } },
      spec: { templateParameters: '{"a":{"b":[{"c":"{}"}]}}', nodeRequests: [], n: 5, no: null },
      status: { conditions: [{ message: 'all { well } }}' }] },
    };
    expect(playbookSafe(order)).to.deep.equal(order);
    expect(playbookSafe({ kind: 'ClusterOrder' })).to.deep.equal({ kind: 'ClusterOrder' });
  });

  it('has templates in what controllers wrote broken up, so that an error text stops no retry', () => {
    const status = { jobs: [{ message: "'{{{ x }}' is undefined {% y %}" }, { message: '#jinja2: a' }] };
    expect(playbookSafe({ spec: {}, status })).to.deep.equal({
      spec: {},
      status: { jobs: [{ message: "'{ { { x }}' is undefined { % y %}" }, { message: '# jinja2: a' }] },
    });
  });
});
