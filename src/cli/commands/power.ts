import { type Command, Option } from 'commander';
import { stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { nameOf } from '../resources/resource-api.ts';
import { withScope, type ResourceContext, type Scope } from './resource-context.ts';

type PowerOptions = Scope & { readonly dryRun: boolean; readonly at?: string };

const MACHINE = 'compute_instance';
const RUN_STRATEGY = 'run_strategy';
const RESTART = 'restart_requested_at';

const powerCommand = (program: Command, name: string, about: string): Command =>
  withScope(
    program
      .command(name)
      .description(about)
      .argument('<machine>', 'id or name of a compute instance')
      .option('--dry-run', 'check it, but change nothing', false),
  );

/** `ledgerctl start`, `stop` and `restart`: the power of a compute instance, and nothing else of it. */
export const addPowerCommands = (program: Command, context: ResourceContext): void => {
  const change = async (
    text: string,
    spec: JsonObject,
    said: string,
    options: PowerOptions,
  ): Promise<void> => {
    const api = await context.open(options);
    const kind = context.names.find(MACHINE);
    const machine = await api.one(kind, text);
    const mask = Object.keys(spec).map((field) => `spec.${field}`);
    const { dryRun } = options;
    await api.update(kind, stringAt(machine, 'id'), { spec }, { key: context.newKey(), dryRun, mask });
    context.io.out(`${nameOf(kind, machine)} ${said}${dryRun ? ' (dry run)' : ''}\n`);
  };
  powerCommand(program, 'start', 'start a compute instance')
    .addHelpText('after', '\nExamples:\n  ledgerctl start web\n')
    .action((text: string, options: PowerOptions) =>
      change(text, { [RUN_STRATEGY]: 'Always' }, 'is to run', options),
    );
  powerCommand(program, 'stop', 'stop a compute instance; its disks and addresses stay')
    .addHelpText('after', '\nExamples:\n  ledgerctl stop web\n')
    .action((text: string, options: PowerOptions) =>
      change(text, { [RUN_STRATEGY]: 'Halted' }, 'is to stop', options),
    );
  powerCommand(program, 'restart', 'restart a compute instance that runs, now or at a time')
    .addOption(new Option('--at <time>', 'RFC 3339 time of the restart (default: now)'))
    .addHelpText(
      'after',
      '\nExamples:\n  ledgerctl restart web\n  ledgerctl restart web --at 2026-12-01T02:00:00Z\n',
    )
    .action((text: string, options: PowerOptions) => {
      const at = options.at ?? new Date().toISOString();
      return change(text, { [RESTART]: at }, `is to restart at ${at}`, options);
    });
};
