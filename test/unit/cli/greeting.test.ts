import { expect } from 'chai';
import { greeting } from '../../../src/cli/greeting.ts';

/** That its lines work as written: test/e2e/api-examples.test.ts. */
describe('what `npm start` prints on a terminal', () => {
  const HTTP = 'http://127.0.0.1:8001';

  it('is the address, where the API is described, how to get a token, and three calls', () => {
    const lines = greeting(HTTP, true).trim().split('\n');
    expect(lines[0]).to.equal(`fulfillment-ledger listens on ${HTTP}`);
    for (const page of ['/docs', '/openapi.json', '/asyncapi.json'])
      expect(lines[1]).to.include(`${HTTP}${page}`);
    expect(lines.filter((line) => line.includes('ledgerctl token'))).to.have.length(1);
    expect(lines.filter((line) => line.startsWith('  curl '))).to.have.length(3);
    expect(greeting(HTTP, true)).not.to.include('LEDGER_CATALOG');
  });

  it('says where tenants and templates come from when none were loaded', () => {
    expect(greeting(HTTP, false)).to.include('LEDGER_CATALOG=fixtures/catalog npm start');
    expect(greeting(HTTP, false)).to.include(`curl -s ${HTTP}`);
  });
});
