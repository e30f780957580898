import { createServer, type AddressInfo } from 'node:net';
import { expect } from 'chai';
import {
  AS_DEPLOYED,
  E2E_STORES,
  createStack,
  isReady,
  until,
  untilCluster,
  type Stack,
} from '../../support/service/stack.ts';

type Status = {
  readonly publishing: boolean;
  readonly topics: readonly {
    readonly topic: string;
    readonly state: string;
    readonly waiting_events: number;
    readonly last_error?: { readonly reason: string };
  }[];
};

/** An address that nobody listens on. */
const nobody = async (): Promise<string> => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
};

for (const store of E2E_STORES)
  describe(`the service while its Kafka brokers are away (${store})`, function () {
    this.timeout(90_000);
    let stack: Stack;
    before(async () => {
      stack = await createStack(store, AS_DEPLOYED);
    });
    after(() => stack.dispose());

    it('starts, carries out orders, says what is held up and since when, and ends in order', async () => {
      await stack.start({
        LEDGER_KAFKA_BROKERS: `${await nobody()},${await nobody()}`,
        LEDGER_KAFKA_HEARTBEAT_MS: '60000',
      });
      const user = await stack.client({ tenant: 'acme', user: 'alice' });
      const admin = await stack.client({ user: 'root', admin: true });
      const { id } = await user.send<{ id: string }>('POST', '/api/fulfillment/v1/clusters', {
        metadata: { name: 'without-kafka', annotations: { simulation: 'factor=0.05' } },
        spec: { template: { id: 'osac.templates.ocp_ci_small' } },
      });
      await untilCluster(user, id, isReady);
      const held = ({ topics }: Status) => topics.find(({ topic }) => topic === 'osac.state.cluster.v1');
      await until('the topic says that it is held up', async () => {
        const topic = held(await admin.get<Status>('/api/ledger/v1/kafka'));
        return (
          topic?.state === 'waiting' && topic.waiting_events > 0 && topic.last_error?.reason === 'unreachable'
        );
      });
      expect((await fetch(`${stack.http()}/readyz`)).status).to.equal(200);
      const metrics = await (await fetch(stack.service().metrics)).text();
      expect(metrics).to.include('ledger_kafka_publishing{lease="publisher"} 1');
      expect(metrics).to.include('ledger_kafka_topic_stalled{topic="osac.state.cluster.v1"} 1');
      expect(await stack.stop('SIGTERM')).to.equal(0);
      const { log } = stack.service();
      const warnings = log.filter(
        (line) => line.includes('"component":"publisher"') && !line.includes('"level":"info"'),
      );
      expect(warnings, warnings.join('\n')).to.have.length(1);
      expect(warnings[0]).to.include('the Kafka brokers do not answer');
    });
  });
