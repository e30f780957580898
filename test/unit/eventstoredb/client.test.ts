import { EventStoreDBClient } from '@eventstore/db-client';
import { Client as GrpcClient, credentials, Metadata } from '@grpc/grpc-js';
import { expect } from 'chai';
import { checkConnectionString, connect } from '../../../src/adapters/event-store/eventstoredb/client.ts';
import { isNotLeader, isTransient } from '../../../src/adapters/event-store/eventstoredb/errors.ts';

describe('EventStoreDB adapter: connection strings and the library', () => {
  it('accepts what the library accepts, and names only the endpoints', () => {
    const good = {
      'esdb://127.0.0.1:2113?tls=false': '127.0.0.1:2113',
      'esdb://admin:ch%40ngeit@db.example:2113': 'db.example:2113',
      'esdb+discover://admin:x@db.example:2113/?nodePreference=leader&gossipTimeout=3': 'db.example:2113',
      'esdb://a:2113,b:2113,c:2113?keepAliveInterval=-1&tlsVerifyCert=true': 'a:2113,b:2113,c:2113',
    };
    for (const [text, endpoints] of Object.entries(good))
      expect(checkConnectionString(text)).to.deep.equal({ endpoints });
  });

  it('refuses everything else without quoting it', () => {
    const bad = [
      '',
      'sqlite',
      'http://admin:s3cret@db:2113',
      'esdb://',
      'esdb://admin:s3cret@',
      'esdb://admin:s3cret@db:port',
      'esdb://admin:s3cret@db:2113?tlsVerifyCert=false',
      'esdb://admin:s3cret@db:2113?colour=s3cret',
      'esdb://admin:s3cret@db:2113?tls',
      'esdb://admin:s3cret@db:2113?tls=perhaps',
      'esdb://admin:s3cret@db:2113?tlsCAFile=/does/not/exist',
    ];
    for (const text of bad)
      expect(() => checkConnectionString(text), text)
        .to.throw(TypeError)
        .with.property('message')
        .that.does.not.include('s3cret');
  });

  it('reads from the leader only: what another node shows may be over', () => {
    for (const node of ['follower', 'random', 'read_only_replica', 'Follower'])
      for (const option of ['nodePreference', 'node_preference'])
        expect(() => checkConnectionString(`esdb+discover://a:s3cret@db:2113?${option}=${node}`), node)
          .to.throw(TypeError)
          .with.property('message')
          .that.includes('nodePreference')
          .and.includes('LEDGER_EVENT_STORE')
          .and.does.not.include('s3cret');
    for (const text of ['esdb+discover://db:2113', 'esdb+discover://db:2113?nodepreference=Leader'])
      expect(checkConnectionString(text)).to.deep.equal({ endpoints: 'db:2113' });
  });

  it('refuses several hosts with +discover, of which the library would use the first, and says what to write', () => {
    const text = 'esdb+discover://ledger:s3cret@a:2113,b:2113,c:2113?tlsCAFile=/ca.crt';
    expect(() => checkConnectionString(text))
      .to.throw(TypeError)
      .with.property('message')
      .that.equals(
        'esdb+discover:// takes one DNS name, and of several hosts it would use the first only: ' +
          'write esdb://a:2113,b:2113,c:2113, or one DNS name that resolves to every node',
      );
  });

  it('says that credentials without TLS are not sent', () => {
    expect(checkConnectionString('esdb://admin:x@db:2113?tls=false').warning).to.include(
      'not sent without TLS',
    );
  });

  it('the installed library still has the inner functions that the adapter uses', () => {
    const client = EventStoreDBClient.connectionString(
      'esdb://127.0.0.1:2113?tls=false',
    ) as unknown as Record<string, unknown>;
    for (const name of ['handleError', 'getChannel', 'supports', 'callArguments', 'GRPCStreamCreator'])
      expect(client[name], name).to.be.a('function');
  });

  it('an IP address is told to no server as its name, of which Node would warn', () => {
    const optionsFor = (path: string): unknown =>
      credentials.createSsl()._createSecureConnector({ scheme: 'dns', path }, {});
    for (const [path, host] of [
      ['127.0.0.1:2113', '127.0.0.1'],
      ['[::1]:2113', '::1'],
    ] as const)
      expect(optionsFor(path))
        .to.have.property('connectionOptions')
        .that.includes({ host })
        .and.does.not.have.property('servername');
    expect(optionsFor('db.example:2113')).to.have.nested.property(
      'connectionOptions.servername',
      'db.example',
    );
  });

  it('an error that the library cannot digest does not become an unhandled rejection', async () => {
    const client = connect('esdb://127.0.0.1:2113?tls=false', 'test', 0).api as unknown as {
      handleError(client: GrpcClient, error: Error): Promise<void>;
    };
    // The constructor of NotLeaderError fails without its companion trailers.
    const metadata = new Metadata();
    metadata.set('exception', 'not-leader');
    const error = Object.assign(new Error('no trailers'), { code: 5, details: 'no trailers', metadata });
    await client.handleError({} as GrpcClient, error);
    expect(isNotLeader(error)).to.equal(true);
  });

  it('G: errors are told apart by type and by code', () => {
    const raw = Object.assign(new Error('14 UNAVAILABLE'), { code: 14 });
    expect([raw, { type: 'unavailable' }, { type: 'unknown' }, { code: 4 }].map(isTransient)).to.deep.equal(
      Array.from({ length: 4 }, () => true),
    );
    expect(
      [{ code: 7 }, { type: 'access-denied' }, { code: 5 }, undefined, 'x'].map(isTransient),
    ).to.deep.equal(Array.from({ length: 5 }, () => false));
  });
});
