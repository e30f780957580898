import { expect } from 'chai';
import fc from 'fast-check';
import { playbookSafe } from '../../../../src/adapters/automation/playbook-safe.ts';
import { templateInOrder } from '../../../../src/domain/clusters/ansible-templates.ts';
import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import {
  clusterOrderSpec,
  type OrderedSpec,
} from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { check } from '../../../support/property.ts';
import { createOrderRun } from './order-run.ts';
import { order, ordered, selected, time } from './samples.ts';

const text = (value: string): JsonObject => ({
  '@type': 'type.googleapis.com/google.protobuf.StringValue',
  value,
});
const struct = (value: JsonObject): JsonObject => ({
  '@type': 'type.googleapis.com/google.protobuf.Struct',
  value,
});
const spec = (change: Partial<OrderedSpec>): OrderedSpec => ({ ...ordered, ...change });

describe('Ansible templates in the values of an order', () => {
  it('are found in the words of who ordered it', () => {
    expect(templateInOrder(ordered)).to.equal(undefined);
    for (const [change, field] of [
      [{ templateParameters: { banner: text('{{ 1 }}') } }, 'spec.template_parameters.banner'],
      [{ templateParameters: { a: struct({ b: ['x', '{# y #}'] }) } }, 'spec.template_parameters.a.b[1]'],
      [{ sshPublicKey: 'ssh-rsa {%x%}' }, 'spec.ssh_public_key'],
      [{ sshPublicKey: '#jinja2: x' }, 'spec.ssh_public_key'],
      [{ version: { ...ordered.version, releaseImage: 'q/{{x}}' } }, 'spec.release_image'],
    ] as const)
      expect(templateInOrder(spec(change))).to.contain(field.split('.').slice(0, 2).join('.'));
    expect(templateInOrder(spec({ templateParameters: { a: struct({ b: { c: {} } }) } }))).to.equal(
      undefined,
    );
  });

  it('are found exactly where the playbooks of a hub would be refused the order', () => {
    const piece = fc.constantFrom('{', '}', '%', '#', '{{', 'a', '"', '#jinja2:', '\\', '\u007b');
    const words = fc.array(piece, { maxLength: 4 }).map((parts) => parts.join(''));
    check(
      fc.property(words, words, words, (name, value, key) => {
        const given = spec({ templateParameters: { [name]: text(value) }, sshPublicKey: key });
        const refused = (): boolean => {
          try {
            playbookSafe({ spec: clusterOrderSpec(given) as unknown as JsonObject });
            return false;
          } catch {
            return true;
          }
        };
        expect(templateInOrder(given) !== undefined).to.equal(refused());
      }),
    );
  });

  it('are told to placement', () => {
    const run = createOrderRun();
    run.command({ type: 'OrderCluster', ...ordered, sshPublicKey: 'ssh-rsa {{ x }}' });
    expect(run.effect('place').args).to.have.property('ansibleTemplate', 'spec.ssh_public_key');
  });

  it('cannot be brought into an order that is already with such a hub', () => {
    const { given } = specify(clusterDecider);
    const change: ClusterCommand = {
      type: 'ReviseCluster',
      at: time(30),
      changes: { sshPublicKey: 'ssh-rsa {{ x }}' },
    };
    const on = (mode: 'eda' | 'aap' | 'operator'): ClusterEvent[] => [
      order,
      { ...selected, data: { ...selected.data, mode } } as ClusterEvent,
    ];
    for (const mode of ['eda', 'aap'] as const)
      given(...on(mode))
        .when(change)
        .thenRejected('ANSIBLE_TEMPLATE', { field: 'spec.ssh_public_key' });
    expect(given(...on('operator')).when(change).decision).to.have.lengthOf(1);
    expect(given(order).when(change).decision, 'placement decides').to.have.lengthOf(1);
  });
});
