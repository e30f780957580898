import { expect } from 'chai';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { faultOf } from '../../../src/adapters/kafka/faults.ts';
import { createClients } from '../../../src/adapters/kafka/kafkajs-client.ts';
import { createKafkaCluster } from '../../../src/adapters/kafka/kafkajs-cluster.ts';
import { Kafka, logLevel } from '../../../src/adapters/kafka/kafkajs-library.ts';
import { createKafkaLogging } from '../../../src/adapters/kafka/kafkajs-logging.ts';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import { KafkaFault, type TroubleAbout } from '../../../src/app/publisher/ports.ts';
import { manualTime } from '../../support/manual-time.ts';
import { recordingLogger } from '../../support/loggers.ts';

type Queue = {
  pending: unknown[];
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  checkPendingRequests(): void;
  destroy(): void;
};

describe('kafkajs as the service uses it', () => {
  const queueOf = (): Queue => {
    const RequestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as new (
      options: object,
    ) => Queue;
    const quiet = { debug() {}, info() {}, warn() {}, error() {} };
    return new RequestQueue({
      maxInFlightRequests: 1,
      requestTimeout: 30_000,
      enforceRequestTimeout: true,
      clientId: 'test',
      broker: 'b',
      logger: quiet,
    });
  };

  it('arms no timer for a request queue that has nothing to do', () => {
    expect(Kafka).to.be.a('function');
    const queue = queueOf();
    for (let i = 0; i < 1_000; i += 1) queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId).to.equal(null);
  });

  it('arms one timer for a request queue that has to wait', () => {
    const queue = queueOf();
    queue.throttledUntil = Date.now() + 60_000;
    queue.checkPendingRequests();
    const timer = queue.throttleCheckTimeoutId;
    expect(timer).to.not.equal(null);
    queue.checkPendingRequests();
    expect(queue.throttleCheckTimeoutId).to.equal(timer);
    queue.destroy();
  });

  it('is the version that the repair was made for', () => {
    const { version } = createRequire(import.meta.url)('kafkajs/package.json') as { version: string };
    expect(version).to.equal('2.2.4');
  });

  describe('its errors', () => {
    const named = (name: string, message: string, more: object = {}): Error =>
      Object.assign(new Error(message), { name, ...more });
    for (const [error, reason] of [
      [named('KafkaJSConnectionError', 'Connection timeout'), 'unreachable'],
      [named('KafkaJSNonRetriableError', 'Connection error: connect ECONNREFUSED'), 'unreachable'],
      [named('KafkaJSNonRetriableError', 'Broker not connected'), 'unreachable'],
      [named('KafkaJSProtocolError', 'x', { type: 'UNKNOWN_TOPIC_OR_PARTITION' }), 'topic-missing'],
      [named('KafkaJSProtocolError', 'x', { type: 'MESSAGE_TOO_LARGE' }), 'too-large'],
      [named('KafkaJSProtocolError', 'x', { type: 'NOT_ENOUGH_REPLICAS' }), 'full'],
      [named('KafkaJSProtocolError', 'x', { type: 'INVALID_RECORD' }), 'invalid'],
      [named('KafkaJSProtocolError', 'x', { type: 'CORRUPT_MESSAGE' }), 'invalid'],
      [named('KafkaJSProtocolError', 'x', { type: 'CLUSTER_AUTHORIZATION_FAILED' }), 'unauthorized'],
      [named('KafkaJSSASLAuthenticationError', 'x'), 'unauthorized'],
      [named('KafkaJSProtocolError', 'x', { type: 'OUT_OF_ORDER_SEQUENCE_NUMBER' }), 'refused'],
      [new TypeError('a bug'), 'refused'],
    ] as const)
      it(`${error.name} ${'type' in error ? String(error.type) : error.message} means ${reason}`, () => {
        expect(faultOf(error).reason).to.equal(reason);
        const wrapped = Object.assign(new Error('', { cause: error }), {
          name: 'KafkaJSNumberOfRetriesExceeded',
        });
        if (reason !== 'refused') expect(faultOf(wrapped).reason).to.equal(reason);
      });

    it('say whether a broker has answered: it can be reached then, also without its leader', () => {
      const answers = ['NOT_LEADER_FOR_PARTITION', 'TOPIC_AUTHORIZATION_FAILED', 'UNKNOWN'].map((type) =>
        faultOf(named('KafkaJSProtocolError', 'x', { type })),
      );
      expect(answers.map(({ reason, isAnswer }) => [reason, isAnswer])).to.deep.equal([
        ['unreachable', true],
        ['unauthorized', true],
        ['refused', true],
      ]);
      expect(faultOf(named('KafkaJSConnectionError', 'Connection timeout')).isAnswer).to.equal(false);
    });

    it('name the broker, where the text does not', () => {
      const late = (text: string) =>
        faultOf(named('KafkaJSRequestTimeoutError', text, { broker: 'b:1' })).message;
      expect(late('Request Produce timed out')).to.equal('b:1: Request Produce timed out');
      expect(late('no answer of b:1')).to.equal('no answer of b:1');
    });

    it('that come as a list are told by their first', () => {
      const inner = named('KafkaJSProtocolError', 'no rights', { type: 'TOPIC_AUTHORIZATION_FAILED' });
      const fault = faultOf(Object.assign(new Error('Topic creation errors'), { errors: [inner] }));
      expect([fault.reason, fault.message]).to.deep.equal(['unauthorized', 'no rights']);
    });

    it('never tell the password', () => {
      const fault = faultOf(named('KafkaJSSASLAuthenticationError', 'refused hunter2 of user'), 'hunter2');
      expect(fault.message).to.equal('refused [redacted] of user');
      expect(fault.cause).to.equal(undefined);
    });
  });

  describe('its log lines', () => {
    const line = (message: string, level = logLevel.ERROR, more: object = {}, namespace = 'Producer') => ({
      namespace,
      level,
      label: 'ERROR',
      log: { timestamp: '', logger: 'kafkajs', message, ...more },
    });
    const set = () => {
      const log = recordingLogger();
      const time = manualTime();
      const cut = { is: false };
      const write = createKafkaLogging(log, time.clock)({ secret: 'hunter2', isCut: () => cut.is })(
        logLevel.INFO,
      );
      return { log, time, cut, write };
    };

    it('are warnings, since it tries again by itself, without secrets, stacks and buffers', () => {
      const { log, write } = set();
      const more = { broker: 'b:1', error: 'no hunter2', stack: 'at…', payload: { type: 'Buffer' } };
      write(line('Response of hunter2', logLevel.ERROR, more));
      expect(log.lines).to.deep.equal([
        { level: 'warn', fields: { kafkajs: 'Producer', broker: 'b:1', error: 'no [redacted]' } },
      ]);
    });

    it('that repeat are written once a minute, with their number', async () => {
      const { log, time, write } = set();
      for (let i = 0; i < 5; i += 1) write(line('Connection error'));
      write(line('another'));
      await time.pass(61_000);
      write(line('Connection error'));
      expect(log.lines.map(({ fields }) => ('repeated' in fields ? fields.repeated : 0))).to.deep.equal([
        0, 0, 4,
      ]);
    });

    it('that warn are told to whoever waits for an answer: each try once, with its broker, and whether it answered', () => {
      const told: [string, TroubleAbout | undefined][] = [];
      const listened = {
        secret: 'hunter2',
        isCut: () => false,
        onTrouble: (text: string, about?: TroubleAbout) => told.push([text, about]),
      };
      const { log, time } = set();
      const write = createKafkaLogging(log, time.clock)(listened)(logLevel.INFO);
      const of = { broker: 'b:1' };
      write(line('joined', logLevel.INFO));
      write(line('Response Produce', logLevel.ERROR, { ...of, error: 'no hunter2' }, 'Connection'));
      const refused = 'Connection error: connect ECONNREFUSED b:1';
      for (let i = 0; i < 2; i += 1) {
        write(line(refused, logLevel.ERROR, of, 'Connection'));
        write(line(`Failed to connect to seed broker: ${refused}`, logLevel.ERROR, {}, 'BrokerPool'));
      }
      expect(told).to.deep.equal([
        ['b:1: no [redacted]', { broker: 'b:1', isAnswer: true }],
        [refused, { broker: 'b:1', isAnswer: false }],
        [refused, { broker: 'b:1', isAnswer: false }],
      ]);
    });

    it('of connections are for debugging: the publisher says once for all of them that brokers are away', () => {
      const { log, write } = set();
      const namespaces = ['Connection', 'BrokerPool', 'RequestQueue', 'SaslAuthenticator-SCRAM-SHA-512'];
      for (const namespace of namespaces) write(line('Connection error', logLevel.ERROR, {}, namespace));
      expect(log.lines.map(({ level }) => level)).to.deep.equal(namespaces.map(() => 'debug'));
    });

    it('of the client as a whole have no place of their own', () => {
      const { log, write } = set();
      write({ ...line('something is deprecated', logLevel.WARN), namespace: undefined as never });
      expect(log.lines.map(({ level }) => level)).to.deep.equal(['warn']);
    });

    it('of little account are for debugging', () => {
      const { log, cut, write } = set();
      write(line('joined', logLevel.INFO));
      write(
        line('Limiting retries for the idempotent producer may invalidate EoS guarantees', logLevel.WARN),
      );
      cut.is = true;
      write(line('Connection error: the connection to the brokers was closed'));
      expect(log.lines.map(({ level }) => level)).to.deep.equal(['debug', 'debug', 'debug']);
    });
  });

  describe('with brokers that do not answer', () => {
    let server: Server;
    let brokers: string[];
    const sockets = new Set<Socket>();
    before(async () => {
      server = createServer((socket) => {
        sockets.add(socket);
        socket
          .on('error', () => undefined)
          .resume()
          .once('close', () => sockets.delete(socket));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      brokers = [`127.0.0.1:${(server.address() as AddressInfo).port}`];
    });
    after(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const ports = { logger: recordingLogger(), clock: systemClock() };
    const reasonOf = async (work: Promise<unknown>): Promise<string> => {
      const outcome = await work.catch((error: unknown) => error);
      return outcome instanceof KafkaFault ? outcome.reason : String(outcome);
    };
    const until = async (isSo: () => boolean): Promise<void> => {
      for (const deadline = performance.now() + 5_000; !isSo(); ) {
        if (performance.now() > deadline) throw new Error('never');
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };

    it('opening ends at once when it is told to, and leaves no connection', async () => {
      const stop = new AbortController();
      const opening = reasonOf(
        createKafkaCluster({ brokers, clientId: 't' }, ports).producers.open(stop.signal),
      );
      await until(() => sockets.size > 0);
      const began = performance.now();
      stop.abort();
      expect(await opening).to.equal('closed');
      expect(performance.now() - began, "of a request's 30 s").to.be.lessThan(10_000);
      await until(() => sockets.size === 0);
    });

    it('whoever asks and has no more time is told of each broker what is wrong with it', async () => {
      const closing = createServer();
      await new Promise<void>((resolve) => closing.listen(0, '127.0.0.1', resolve));
      const away = `127.0.0.1:${(closing.address() as AddressInfo).port}`;
      await new Promise((resolve) => closing.close(resolve));
      const settings = { brokers: [...brokers, away], clientId: 't' };
      const { admin } = createKafkaCluster(settings, ports);
      // Each client begins with another one, or one that takes connections and answers nobody would be all that is
      // asked.
      const asked = async (): Promise<KafkaFault> =>
        (await admin
          .describe(['a'], AbortSignal.timeout(150))
          .catch((error: unknown) => error)) as KafkaFault;
      const faults: KafkaFault[] = [];
      await until(() => sockets.size === 0);
      for (let i = 0; i < 2 && !faults.some(({ message }) => message.includes('ECONNREFUSED')); i += 1)
        faults.push(await asked());
      expect(faults.map(({ reason }) => reason)).to.not.include('closed');
      expect(faults.at(-1)?.message).to.satisfy((text: string) =>
        [`${brokers[0]}: no answer in time`, `${away}: connect ECONNREFUSED`].every((each) =>
          text.split('; ').includes(each),
        ),
      );
    });

    it('whoever listens is told that they ended the connection, but not of an end of ours', async () => {
      const told: string[] = [];
      const listened = { onTrouble: (problem: string) => told.push(problem) };
      const clients = createClients(
        { brokers, clientId: 't', retry: { retries: 0, maxRetryTime: 1 } },
        ports,
      );
      const ours = await clients(listened);
      const connecting = ours.kafka
        .producer()
        .connect()
        .catch(() => undefined);
      await until(() => sockets.size > 0);
      ours.cut();
      await connecting;
      expect(told.filter((text) => text.includes('ended'))).to.deep.equal([]);
      await until(() => sockets.size === 0);
      const theirs = await clients(listened);
      const again = theirs.kafka
        .producer()
        .connect()
        .catch(() => undefined);
      await until(() => sockets.size > 0);
      for (const socket of sockets) socket.end();
      await until(() => told.some((text) => text === `${brokers[0] ?? ''} ended the connection`));
      theirs.cut();
      await again;
    });

    it('a client that was cut off connects to nobody any more', async () => {
      const client = await createClients({ brokers, clientId: 't' }, ports)();
      const producer = client.kafka.producer();
      const connecting = producer.connect().catch((error: unknown) => client.faultOf(error).reason);
      await until(() => sockets.size > 0);
      client.cut();
      expect(await connecting).to.equal('closed');
      await until(() => sockets.size === 0);
      const again = await producer.connect().catch((error: unknown) => client.faultOf(error).reason);
      expect(again).to.equal('closed');
      expect(sockets.size).to.equal(0);
    });

    it('a password file that is not there is named', async () => {
      const sasl = { mechanism: 'scram-sha-512', username: 'u', passwordFile: '/nowhere/password' } as const;
      const { producers } = createKafkaCluster({ brokers, clientId: 't', sasl }, ports);
      const fault = await producers.open(new AbortController().signal).catch((error: unknown) => error);
      expect((fault as KafkaFault).message).to.equal(
        'LEDGER_KAFKA_SASL_PASSWORD_FILE: /nowhere/password cannot be read: ENOENT',
      );
    });
  });
});
