import { expect } from 'chai';
import { isProduction } from '../../../src/app/deployment/production.ts';

describe('production', () => {
  it('is meant by NODE_ENV=production in any case and with blanks around it', () => {
    for (const text of ['production', 'PRODUCTION', ' Production', 'production\n'])
      expect(isProduction(text), JSON.stringify(text)).to.equal(true);
    for (const text of [undefined, '', 'test', 'pre-production', 'productio n'])
      expect(isProduction(text), String(text)).to.equal(false);
  });
});
