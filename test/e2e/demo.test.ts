import { expect } from 'chai';
import { runMain } from '../support/service/run-main.ts';

describe('the demo', function () {
  this.timeout(180_000);

  it('ends with 1, and says what, as soon as something is not as it says', async () => {
    const { code, out } = await runMain(['demo', '--template', 'osac.templates.nobody_has_this']);
    expect(out).to.match(/\n {3}NOT AS CLAIMED: the catalogue is offered to the tenant \(.*\)\n/);
    expect(code).to.equal(1);
    expect(out, 'plain when it is piped').not.to.include('\u001B');
  });
});
