import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkKafkaFiles } from '../../../src/composition/opening.ts';
import { BadSetting } from '../../../src/config.ts';
import { loopbackTls, type LoopbackTls } from '../../support/http/loopback-tls.ts';

describe("files of the brokers' settings", () => {
  let dir: string;
  let tls: LoopbackTls;
  before(async () => {
    tls = await loopbackTls();
  });
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'ledger-kafka-files-'));
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  /** What is said of a file of this text as the certificate of the authority; undefined: it is taken. */
  const problem = async (ca: string, kafkaBrokers = ['127.0.0.1:1']): Promise<string | undefined> => {
    const file = join(dir, 'ca.pem');
    writeFileSync(file, ca);
    try {
      await checkKafkaFiles({ kafkaBrokers, kafkaTlsCa: file, kafkaSaslPasswordFile: undefined });
      return undefined;
    } catch (error) {
      if (error instanceof BadSetting) return error.message.replaceAll(file, 'FILE');
      throw error;
    }
  };

  it('are taken that hold a certificate, or several, whatever stands before them', async () => {
    expect(await problem(tls.cert)).to.equal(undefined);
    expect(await problem(`# the authority\n${tls.cert}\n# the next one\n${tls.cert}`)).to.equal(undefined);
    expect(await problem(`${tls.key}\n${tls.cert}`)).to.equal(undefined);
  });

  it('are refused that hold none: nobody would be trusted, and no connection ever made', async () => {
    const broken = tls.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA');
    for (const text of ['', 'ca', tls.key, broken, '-----BEGIN CERTIFICATE-----\n'])
      expect(await problem(text)).to.equal(
        'LEDGER_KAFKA_TLS_CA: FILE holds no certificate (PEM). Example: LEDGER_KAFKA_TLS_CA=/etc/kafka/ca.pem',
      );
  });

  it('are not looked at without brokers', async () => {
    expect(await problem('', [])).to.equal(undefined);
  });
});
