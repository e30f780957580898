import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import { readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import { createHubBench, manifestOf, REF } from './hub-support.ts';

describe('simulated hub: pull secrets', () => {
  const bench = createHubBench();
  after(() => bench.close());

  /** Everything that lies on the disk of the hub. */
  const onDisk = (): string => {
    const folder = dirname(bench.file);
    return readdirSync(folder)
      .filter((name) => name.startsWith(basename(bench.file)))
      .map((name) => readFileSync(join(folder, name), 'latin1'))
      .join('');
  };

  it('are not kept, in no part; a changed one is a change all the same', async () => {
    const { hub, by } = bench;
    const [first, second] = ['{"auths":{"canary-one":1}}', '{"auths":{"canary-two":2}}'];
    const made = await hub.create(CLUSTER_ORDER, manifestOf('one', { spec: { pullSecret: first } }), by());
    const same = await hub.patch(CLUSTER_ORDER, REF('one'), { pullSecret: first }, by());
    expect(same.generation, 'the same again').to.equal(made.generation);
    const other = await hub.patch(CLUSTER_ORDER, REF('one'), { pullSecret: second }, by());
    expect(other.generation).to.equal(made.generation + 1);
    expect(other.spec.pullSecret).to.not.equal(made.spec.pullSecret);
    const without = await hub.patch(CLUSTER_ORDER, REF('one'), { pullSecret: '' }, by());
    expect(without.spec.pullSecret ?? '').to.equal('');
    expect(JSON.stringify([made, same, other]) + onDisk()).to.not.include('canary');
  });
});
