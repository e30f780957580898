import { expect } from 'chai';
import { createTried, NO_ANSWER } from '../../../src/adapters/kafka/kafkajs-cluster.ts';
import { KafkaFault } from '../../../src/app/publisher/ports.ts';

describe('brokers that were tried', () => {
  const brokers = ['a:1', 'b:2'];
  const sasl = { mechanism: 'plain', username: 'u', passwordFile: 'f' } as const;
  const unreachable = (message: string) => new KafkaFault('unreachable', message);
  const told = (
    problems: readonly (readonly [broker: string, problem: string])[],
    settings: { readonly tlsCa?: string; readonly sasl?: typeof sasl } = {},
    fault: KafkaFault = unreachable('Connection error'),
  ): string => {
    const tried = createTried({ brokers, ...settings });
    for (const [broker, problem] of problems) tried.note(problem, { broker });
    return (tried.explained(fault) as KafkaFault).message;
  };

  it('are named with what was wrong with each', () => {
    expect(
      told([
        ['a:1', 'Connection error: connect ECONNREFUSED a:1'],
        ['b:2', 'b:2: Connection error: getaddrinfo ENOTFOUND'],
      ]),
    ).to.equal('a:1: connect ECONNREFUSED; b:2: getaddrinfo ENOTFOUND');
    expect(told([['a:1', 'Connection timeout']], {}, unreachable(NO_ANSWER))).to.equal(
      `a:1: Connection timeout; b:2: ${NO_ANSWER}`,
    );
    expect(told([])).to.equal('a:1, b:2: Connection error');
  });

  it('that end the connection may ask for what is not set, or speak something else', () => {
    const ended: (readonly [string, string])[] = [['a:1', 'a:1 ended the connection']];
    expect(told(ended)).to.equal(
      'a:1: it ended the connection (does it ask for TLS (LEDGER_KAFKA_TLS_CA) or for a password (LEDGER_KAFKA_SASL_MECHANISM)?)',
    );
    expect(told(ended, { tlsCa: 'system' })).to.include('(does it ask for a password');
    expect(told(ended, { tlsCa: 'system', sasl })).to.equal('a:1: it ended the connection');
    const plain = 'Client network socket disconnected before secure TLS connection was established';
    expect(told([['a:1', plain]], { tlsCa: 'system' })).to.include('does it speak TLS there?');
    expect(told([['a:1', 'self-signed certificate']], { tlsCa: 'system' })).to.include(
      '(see LEDGER_KAFKA_TLS_CA)',
    );
  });

  it('leave alone what is not about reaching them', () => {
    const fault = new KafkaFault('full', 'no room');
    expect(told([['a:1', 'x']], {}, fault)).to.equal('no room');
    const refused = new KafkaFault('unauthorized', 'SASL failed');
    const tried = createTried({ brokers });
    tried.note('a:1: SASL failed', { broker: 'a:1', isAnswer: true });
    expect(tried.explained(refused)).to.include({
      reason: 'unauthorized',
      message: 'a:1: SASL failed',
      isAnswer: true,
    });
  });
});
