import { expect } from 'chai';
import { hostname } from 'node:os';
import { stringAt } from '../../../src/domain/json-tools.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';

/** Tenants read the metadata of their events in exports: how the provider's machines are called is not theirs to know. */
describe('the name of a run of the service', function () {
  this.timeout(30_000);
  let whole: WholeService;
  const lines: string[] = [];
  beforeEach(async () => {
    whole = await createWholeService({}, { write: (line) => void lines.push(line) });
    await whole.start();
    await whole.stop();
  });
  afterEach(() => whole.dispose());

  it('says nothing of its machine in events; leases, which are of no history, do', async () => {
    const log = await whole.log();
    const history = log.filter(({ stream }) => !stream.startsWith('sys-'));
    expect(history).to.have.length.greaterThan(10);
    const names = new Set(history.map(({ metadata }) => stringAt(metadata, 'instance')));
    expect(names.size).to.equal(1);
    const [name] = [...names];
    expect(name).to.match(/^[0-9a-f]{12}$/);
    for (const { metadata } of history)
      expect(JSON.stringify(metadata)).not.to.include(`${hostname()}-${process.pid}`);
    const leases = log.filter(({ type }) => type === 'LeaseTaken').map(({ data }) => data['holder']);
    expect(leases).to.have.length.greaterThan(0);
    expect(new Set(leases)).to.deep.equal(new Set([`${hostname()}-${process.pid}-${name}`]));
  });
});
