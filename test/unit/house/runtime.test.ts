import { expect } from 'chai';

describe('runtime', () => {
  it('is the Node version that the lock file brings, not whatever the machine has', () => {
    expect(process.version).to.match(/^v24\./);
  });
});
