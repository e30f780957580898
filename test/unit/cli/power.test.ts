import { expect } from 'chai';
import { page, startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

const STRATEGY = 'BARE_METAL_INSTANCE_RUN_STRATEGY_';
const machine = (name: string, strategy: string) => ({
  id: `id-${name}`,
  metadata: { name, tenant: 'acme', version: 1 },
  spec: { run_strategy: strategy },
});

describe('ledgerctl start, stop and restart', () => {
  let cli: CliStub;
  beforeEach(async () => {
    cli = await startCliStub();
  });
  afterEach(() => cli.close());

  const holds = (...machines: object[]): void =>
    cli.answers(({ verb }) => (verb === 'GET' ? page(...machines) : { body: machines[0] }));

  it('tell how a server is named when no compute instance is called so', async () => {
    holds();
    const { code, err } = await cli.run(['stop', 'db1']);
    expect(err).to.equal(
      "ledgerctl: compute instance 'db1' not found; a server is named baremetalinstance/db1\n",
    );
    expect(code).to.equal(3);
    expect((await cli.run(['stop', 'baremetalinstance/db1'])).err).not.to.include('is named');
  });

  for (const [target, name, off, on] of [
    ['vm1', 'vm1', 'Halted', 'Always'],
    ['baremetalinstance/db1', 'db1', `${STRATEGY}HALTED`, `${STRATEGY}ALWAYS`],
  ] as const) {
    it(`refuse to restart ${target} when it is stopped, and change nothing`, async () => {
      holds(machine(name, off));
      const { code, err } = await cli.run(['restart', target]);
      expect(err).to.equal(`ledgerctl: ${name} is stopped: start it\n`);
      expect(code).to.equal(1);
      expect(cli.asked.filter(({ verb }) => verb !== 'GET')).to.deep.equal([]);
    });

    it(`ask for a restart when ${target} runs`, async () => {
      holds(machine(name, on));
      expect(await cli.succeeds(['restart', target])).to.match(/ is to restart /);
      expect(cli.asked.map(({ verb }) => verb)).to.include('PATCH');
    });
  }
});
