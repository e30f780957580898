import { expect } from 'chai';
import type { Command } from 'commander';
import type { CliActions } from '../../../src/cli/connection.ts';
import { createCli, runCli } from '../../../src/cli/ledgerctl.ts';

const unused = () => Promise.reject(new Error('not in this test'));
const actions: CliActions = {
  serve: unused,
  demo: unused,
  mintToken: async () => 'token',
  checkStore: unused,
  verifyStore: unused,
  showEvent: unused,
  restoreStore: unused,
  defaultDataDir: 'data',
  eventStore: 'sqlite',
  version: '1',
};

const helpOf = async (path: readonly string[]): Promise<string> => {
  let out = '';
  const io = { out: (text: string) => (out += text), err: () => undefined };
  expect(await runCli(await createCli(actions, io), [...path, '--help'], io)).to.equal(0);
  return out;
};

/** Every command that does something; groups only list theirs, hidden ones are not for people. */
const commandsOf = (command: Command, path: readonly string[] = []): string[][] =>
  command.commands
    .filter((each) => !each.name().startsWith('_'))
    .flatMap((each) =>
      each.commands.length > 0 ? commandsOf(each, [...path, each.name()]) : [[...path, each.name()]],
    );

const silent = { out: () => undefined, err: () => undefined };
const program = await createCli(actions, silent);

describe('the help of ledgerctl', () => {
  const commands = commandsOf(program);

  it('is the same where only the command that is called was loaded', async () => {
    for (const command of commands) {
      const alone = await createCli(actions, silent, ['--token', 'x', ...command, '--help']);
      expect(commandsOf(alone).map((path) => path.join(' '))).to.include(command.join(' '));
    }
  });

  it('lists every command with its line, however few were loaded', async () => {
    for (const argv of [[], ['--help'], ['lane'], ['help'], ['__complete', '--', ''], ['orders', 'list']]) {
      const some = await createCli(actions, silent, argv);
      expect(some.helpInformation(), argv.join(' ')).to.equal(program.helpInformation());
    }
    const lists = (await createCli(actions, silent, ['lanes', 'list'])).commands.filter(
      ({ commands: below }) => below.length > 0,
    );
    expect(lists.map((command) => command.name())).to.deep.equal(['lanes']);
  });

  it('is asked of every command', () => {
    const names = [
      'serve',
      'demo',
      'token',
      'events',
      'kinds',
      'get',
      'describe',
      'create',
      'apply',
      'delete',
    ];
    names.push(
      'attach',
      'detach',
      'start',
      'stop',
      'restart',
      'label',
      'annotate',
      'scale',
      'kubeconfig',
      'password',
      'completion',
    );
    names.push('orders list', 'orders show', 'orders retry', 'orders cancel');
    names.push('orders skip', 'orders resume', 'orders abort');
    names.push('lanes list', 'lanes pause', 'lanes resume', 'store backup', 'store check');
    names.push('projections list', 'projections status', 'projections rebuild', 'projections digest');
    expect(commands.map((path) => path.join(' '))).to.include.members(names);
  });

  it('says which service is asked: the one whose settings are read', async () => {
    expect(await helpOf([])).to.match(
      /--url.*address of the service \(default:\s+LEDGER_HTTP_ADDRESS,\s+else\s+http:\/\/127\.0\.0\.1:8001,\s+env:\s+LEDGERCTL_URL\)/s,
    );
  });

  for (const path of [[], ['orders'], ['lanes'], ['projections'], ['store'], ...commands])
    it(`says how ${['ledgerctl', ...path].join(' ')} is used`, async () => {
      const help = await helpOf(path);
      expect(help).to.match(new RegExp(`^Usage: ledgerctl ${path.join(' ')}`.trimEnd()));
      expect(help.length).to.be.greaterThan(80);
      // That an option is off, or names nothing, where it is not given goes without saying.
      expect(help.replaceAll(/\s+/g, ' ')).to.not.match(/default: (\[\]|false)\)/);
    });

  for (const path of commands) {
    const called = path.join(' ');
    it(`of "${called}" ends with examples of it`, async () => {
      const [, examples = ''] = (await helpOf(path)).split('\nExamples:\n');
      expect(examples).to.match(new RegExp(`ledgerctl ${called}\\b`));
    });
  }
});
