import { expect } from 'chai';
import { startKubeProcess, type KubeProcess } from '../../support/kube-apiserver/process.ts';
import { kubeClient } from '../../support/kube-apiserver/client.ts';
import { expectCode } from '../../support/kube-conformance/context.ts';
import { SPEC, order, ordersOf } from '../../support/kube-conformance/requests.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import { eventually } from '../../support/eventually.ts';

const ORDERS = ordersOf('osac-hub');

describe('the stand-in as a process of its own', () => {
  const running: KubeProcess[] = [];
  const start = async (...args: Parameters<typeof startKubeProcess>): Promise<KubeProcess> => {
    const one = await startKubeProcess(...args);
    running.push(one);
    return one;
  };
  afterEach(async () => {
    for (const one of running.splice(0)) await one.kill();
  });

  it('plays a whole hub: an order becomes Ready, and faults come by command', async () => {
    const hub = await start('hub', ['--pace', '0', '--every', '10', '--hosts', 'fc430=2']);
    const client = kubeClient(hub);
    const nodeRequests = [{ resourceClass: 'fc430', numberOfNodes: 2 }];
    expectCode(await client.post(ORDERS, order('one', { ...SPEC, nodeRequests })), 201);
    await eventually('the order is Ready', async () => {
      const status = objectAt((await client.get(`${ORDERS}/one`)).body, 'status');
      return status['phase'] === 'Ready';
    });
    const { id } = await hub.command('fault', {
      match: { verb: 'list', resource: 'clusterorders' },
      fault: { kind: 'answer', code: 503 },
      times: 1,
    });
    expectCode(await client.get(ORDERS), 503);
    expectCode(await client.get(ORDERS), 200);
    expect(await hub.command('fault-hits', { id: id ?? '' })).to.deep.equal({ hits: 1, held: 0 });
    client.close();
  });
});
