import { expect } from 'chai';
import { createLogger } from '../../../src/composition/logger.ts';

const lineOf = (fields: object): string => {
  let written = '';
  const logger = createLogger('info', { write: (line) => void (written += line) });
  logger.info(fields, 'said');
  return written;
};

describe("the service's logger", () => {
  for (const [where, fields] of [
    ['a field', { pull_secret: 'SENTINEL' }],
    ['a field of a field', { command: { pullSecret: 'SENTINEL' } }],
    ['a header', { req: { headers: { authorization: 'Bearer SENTINEL' } } }],
    ['a document', { object: { spec: { kubeconfig: 'SENTINEL' } } }],
    ['a document in a field', { before: { spec: { pull_secret: 'SENTINEL' } } }],
    ['a token', { token: 'SENTINEL' }],
  ] as const)
    it(`does not write the secret in ${where}`, () => {
      const line = lineOf({ ...fields, tenant: 'acme' });
      expect(line).not.to.contain('SENTINEL');
      expect(line).to.contain('[redacted]');
      expect(JSON.parse(line)).to.include({ msg: 'said', tenant: 'acme', pid: process.pid });
    });

  it('writes levels as words and times as ISO 8601', () => {
    const { level, time } = JSON.parse(lineOf({})) as { level: unknown; time: string };
    expect(level).to.equal('info');
    expect(new Date(time).toISOString()).to.equal(time);
  });

  it('keeps its level and redacts in children as well', () => {
    let written = '';
    const logger = createLogger('warn', { write: (line) => void (written += line) });
    logger.info({}, 'unsaid');
    logger.child({ component: 'x' }).warn({ password: 'SENTINEL' }, 'said');
    expect(written).not.to.match(/unsaid|SENTINEL/);
    expect(JSON.parse(written)).to.include({ component: 'x', password: '[redacted]' });
  });
});
