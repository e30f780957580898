import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { BadSetting, readConfig, settings } from '../../../src/config.ts';
import { configurationTable } from '../../support/configuration-table.ts';
import { durationMs } from '../../../src/domain/iso-duration.ts';

const refusal = (environment: Record<string, string>): string => {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof BadSetting) return error.message;
    throw error;
  }
  throw new Error('the settings were accepted');
};

describe('settings', () => {
  it('need nothing: every one has a default', () => {
    const config = readConfig({});
    expect(config.httpAddress).to.deep.equal({ host: '127.0.0.1', port: 8001 });
    expect(config.grpcAddress).to.deep.equal({ host: '127.0.0.1', port: 8000 });
    expect(config.eventStore).to.equal('sqlite');
    expect(config.roles).to.deep.equal(['api', 'processes', 'publisher', 'auditor']);
    expect(config.secretsDir).to.match(/\/data\/secrets$/);
  });

  it('an empty gRPC address is no listener', () => {
    expect(readConfig({ LEDGER_GRPC_ADDRESS: '' }).grpcAddress).to.equal(undefined);
  });

  for (const [variable, value, what] of [
    ['LEDGER_HTTP_ADDRESS', 'localhost', 'host:port'],
    ['LEDGER_HTTP_ADDRESS', '127.0.0.1:99999', '65535'],
    ['LEDGER_GRPC_ADDRESS', 'localhost', 'host:port'],
    ['LEDGER_GRPC_ADDRESS', '127.0.0.1:99999', '65535'],
    ['LEDGER_EVENT_STORE', 'postgres://x', 'esdb'],
    ['LEDGER_ROLES', 'api,cook', 'publisher'],
    ['LEDGER_ROLES', ',', 'at least one'],
    ['LEDGER_TRUSTED_ISSUERS', 'http://plain.example', 'https'],
    ['LEDGER_TRUSTED_ISSUERS', 'https://sso.example=', 'no scope after'],
    ['LEDGER_TRUSTED_ISSUERS', 'https://sso.example=acme;;admins', '"" is no tenant'],
    ['LEDGER_TRUSTED_ISSUERS', 'https://sso.example=acme;admin', '"admin" is no scope; write `admins`'],
    ['LEDGER_TRUSTED_ISSUERS', 'https://sso.example=Acme', '"Acme" is no tenant'],
    ['LEDGER_TRUSTED_ISSUERS', 'https://sso.example=acme,globex', 'must be https URLs'],
    [
      'LEDGER_TRUSTED_ISSUERS',
      'https://a.example=acme,https://a.example',
      'https://a.example is named twice',
    ],
    ['LEDGER_TRUSTED_ISSUERS', 'https://me:hunter2@sso.example', 'must hold no user name or password'],
    ['LEDGER_TRUSTED_ISSUERS', 'https://:hunter2@sso.example=acme', 'must hold no user name or password'],
    ['LEDGER_KAFKA_BROKERS', 'kafka', 'host:port'],
    ['LEDGER_KAFKA_SASL_MECHANISM', 'kerberos', 'scram-sha-512'],
    ['LEDGER_KAFKA_HEARTBEAT_MS', '10', 'between 1000'],
    ['LEDGER_KAFKA_CLIENT_ID', 'a b', 'letters'],
    ['LEDGER_LOG_LEVEL', 'loud', 'info'],
    ['LEDGER_STORE_DEADLINE_MS', '10s', 'milliseconds'],
    ['LEDGER_DATA_DIR', '', 'directory'],
    ['LEDGER_DEPLOYMENT_NAME', 'prod east', '1 to 63 letters'],
    ['LEDGER_CORS_ORIGINS', 'ui.example', 'origins like https://host:port'],
    ['LEDGER_CORS_ORIGINS', 'https://ui.example/', 'origins like https://host:port'],
    ['LEDGER_RATE_LIMIT_TENANT', '-1', 'whole number'],
    ['LEDGER_RATE_LIMIT_ADDRESS', '1e3', 'whole number'],
    ['LEDGER_CONCURRENT_REQUESTS', '100001', 'between 0 and 100000'],
  ] as const) {
    it(`refuses ${variable}=${value}, naming variable, fault and an example`, () => {
      expect(refusal({ [variable]: value }))
        .to.include(variable)
        .and.include(what)
        .and.include(`Example: ${variable}=`);
    });
  }

  it('never repeats a password', () => {
    for (const url of ['https://me:hunter2@sso.example', 'https://:hunter2@sso.example=acme'])
      expect(refusal({ LEDGER_TRUSTED_ISSUERS: url })).not.to.include('hunter2');
  });

  it('say of each issuer what it may claim; without a scope everything', () => {
    const issuers =
      ' https://all.example/realms/x , https://idp.example=acme;globex;admins;services,https://any.example=*';
    expect(readConfig({ LEDGER_TRUSTED_ISSUERS: issuers }).trustedIssuers).to.deep.equal([
      { issuer: 'https://all.example/realms/x' },
      {
        issuer: 'https://idp.example',
        scope: { tenants: ['acme', 'globex'], admins: true, services: true },
      },
      { issuer: 'https://any.example', scope: { tenants: 'all', admins: false, services: false } },
    ]);
    expect(readConfig({}).trustedIssuers).to.deep.equal([]);
    expect(readConfig({}).tokenAudience).to.equal(undefined);
    expect(readConfig({ LEDGER_TOKEN_AUDIENCE: 'osac-api' }).tokenAudience).to.equal('osac-api');
  });

  it('refuses half of what it takes to say who it is to the brokers', () => {
    const mechanism = { LEDGER_KAFKA_SASL_MECHANISM: 'scram-sha-512' };
    expect(refusal(mechanism))
      .to.include('LEDGER_KAFKA_SASL_USERNAME: is needed')
      .and.include('Example: LEDGER_KAFKA_SASL_USERNAME=')
      .and.include('LEDGER_KAFKA_SASL_PASSWORD_FILE: is needed')
      .and.include('Example: LEDGER_KAFKA_SASL_PASSWORD_FILE=');
    expect(refusal({ LEDGER_KAFKA_SASL_USERNAME: 'u' })).to.include('LEDGER_KAFKA_SASL_MECHANISM: is needed');
    const whole = { LEDGER_KAFKA_SASL_USERNAME: 'u', LEDGER_KAFKA_SASL_PASSWORD_FILE: '/p' };
    expect(readConfig({ ...mechanism, ...whole }).kafkaSaslMechanism).to.equal('scram-sha-512');
    expect(refusal({ ...whole, LEDGER_KAFKA_SASL_MECHANISM: 'plain' }))
      .to.include('password in clear')
      .and.include('Example: LEDGER_KAFKA_TLS_CA=');
    const encrypted = { ...whole, LEDGER_KAFKA_SASL_MECHANISM: 'plain', LEDGER_KAFKA_TLS_CA: 'system' };
    expect(readConfig(encrypted).kafkaTlsCa).to.equal('system');
  });

  it('refuses a misspelt variable', () => {
    expect(refusal({ LEDGER_HTTP_ADRESS: 'x' })).to.include('LEDGER_HTTP_ADRESS: there is no such setting');
  });

  it('names the word it does not know, in plain words', () => {
    expect(refusal({ LEDGER_ROLES: 'api,foo' })).to.include(
      'LEDGER_ROLES: there is no role "foo"; it can name api, processes, publisher, auditor (got "api,foo")',
    );
    expect(refusal({ LEDGER_LOG_LEVEL: 'loud' })).to.include('there is no level "loud"; it can name trace,');
  });

  it('names every bad variable at once', () => {
    const message = refusal({ LEDGER_ROLES: 'cook', LEDGER_LOG_LEVEL: 'loud' });
    expect(message).to.include('LEDGER_ROLES').and.include('LEDGER_LOG_LEVEL');
  });

  it('takes a deadline for placements as orders do', () => {
    for (const text of ['PT30M', 'P2D', 'P1DT12H', 'P99W']) {
      expect(readConfig({ LEDGER_PLACEMENT_DEADLINE: text }).placementDeadline).to.equal(text);
      expect(durationMs(text), text).to.be.greaterThan(0);
    }
    for (const text of ['PT0S', 'P1Y', 'P1M', '30m', 'P100W', 'PT']) {
      expect(refusal({ LEDGER_PLACEMENT_DEADLINE: text })).to.include('ISO 8601 duration');
      expect(durationMs(text), text).to.equal(undefined);
    }
    expect(readConfig({}).placementDeadline).to.equal(undefined);
    expect(readConfig({}).tenantsSeeJobErrors).to.equal(false);
    expect(readConfig({ LEDGER_TENANTS_SEE_JOB_ERRORS: 'true' }).tenantsSeeJobErrors).to.equal(true);
    expect(refusal({ LEDGER_TENANTS_SEE_JOB_ERRORS: 'yes' })).to.include('it can name true, false');
  });

  it('does not repeat credentials of a connection string', () => {
    expect(refusal({ LEDGER_EVENT_STORE: 'http://admin:hunter2@host' })).not.to.include('hunter2');
  });

  it('stand in docs/configuration.md exactly as the schema says', () => {
    expect(readFileSync('docs/configuration.md', 'utf8')).to.include(configurationTable(settings));
  });
});
