import { type Command, InvalidArgumentError, Option } from 'commander';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { CliFailure, EXIT, notFound } from '../exit.ts';
import { printable } from '../output.ts';
import { nameOf } from '../resources/resource-api.ts';
import { targetOf, withScope, type ResourceContext, type Scope } from './resource-context.ts';

type PowerOptions = Scope & { readonly dryRun: boolean; readonly at?: string };

/** How the power of a machine is said in its spec. `again`: a restart, at a time if one was given. */
type Power = {
  readonly on: JsonObject;
  readonly off: JsonObject;
  readonly again: (spec: JsonObject, at: string | undefined) => readonly [change: JsonObject, said: string];
};

const VIRTUAL = 'compute_instance';
const STRATEGY = 'BARE_METAL_INSTANCE_RUN_STRATEGY_';
const POWERS: { readonly [kind: string]: Power } = {
  computeInstance: {
    on: { run_strategy: 'Always' },
    off: { run_strategy: 'Halted' },
    again: (_spec, at = new Date().toISOString()) => [{ restart_requested_at: at }, `is to restart at ${at}`],
  },
  bareMetalInstance: {
    on: { run_strategy: `${STRATEGY}ALWAYS` },
    off: { run_strategy: `${STRATEGY}HALTED` },
    again: (spec, at) => {
      if (at !== undefined)
        throw new InvalidArgumentError('a bare-metal instance restarts now: leave --at out');
      const next = BigInt(stringAt(spec, 'restart_trigger') || '0') + 1n;
      return [{ restart_trigger: String(next) }, 'is to restart now'];
    },
  },
};

const powerCommand = (program: Command, name: string, about: string): Command =>
  withScope(
    program
      .command(name)
      .description(about)
      .argument('<machine>', 'id or name of a compute instance, or baremetalinstance/<id or name>')
      .option('--dry-run', 'check it, but change nothing', false),
  );

/** `ledgerctl start`, `stop` and `restart`: the power of a machine, and nothing else of it. */
export const addPowerCommands = (program: Command, context: ResourceContext): void => {
  const change = async (
    text: string,
    wanted: (
      power: Power,
      spec: JsonObject,
      machine: JsonObject,
    ) => readonly [change: JsonObject, said: string],
    options: PowerOptions,
  ): Promise<void> => {
    const { kind, name } = targetOf(context.names, text.includes('/') ? [text] : [VIRTUAL, text]);
    const power = POWERS[kind.kind.kind];
    if (power === undefined)
      throw new InvalidArgumentError(
        `"${text}" is not a machine: name a compute instance or a bare-metal instance`,
      );
    const api = await context.open(options);
    const machine = await api.one(kind, name).catch((error: unknown) => {
      const isAbsent = error instanceof CliFailure && error.message.endsWith(' not found');
      if (!isAbsent || text.includes('/')) throw error;
      throw notFound(`${error.message}; a server is named baremetalinstance/${text}`);
    });
    const [spec, said] = wanted(power, objectAt(machine, 'spec'), machine);
    const mask = Object.keys(spec).map((field) => `spec.${field}`);
    const { dryRun } = options;
    await api.update(kind, stringAt(machine, 'id'), { spec }, { key: context.newKey(), dryRun, mask });
    context.io.out(`${nameOf(kind, machine)} ${said}${dryRun ? ' (dry run)' : ''}\n`);
  };
  powerCommand(program, 'start', 'start a compute instance or a bare-metal instance')
    .addHelpText('after', '\nExamples:\n  ledgerctl start web\n  ledgerctl start baremetalinstance/db1\n')
    .action((text: string, options: PowerOptions) => change(text, ({ on }) => [on, 'is to run'], options));
  powerCommand(program, 'stop', 'stop a compute instance or a bare-metal instance; disks and addresses stay')
    .addHelpText('after', '\nExamples:\n  ledgerctl stop web\n')
    .action((text: string, options: PowerOptions) => change(text, ({ off }) => [off, 'is to stop'], options));
  powerCommand(program, 'restart', 'restart a machine that runs; a compute instance now or at a time')
    .addOption(new Option('--at <time>', 'RFC 3339 time of the restart (default: now)'))
    .addHelpText(
      'after',
      '\nExamples:\n  ledgerctl restart web\n  ledgerctl restart web --at 2026-12-01T02:00:00Z\n',
    )
    .action((text: string, options: PowerOptions) =>
      change(
        text,
        ({ off, again }, spec, machine) => {
          if (spec['run_strategy'] === off['run_strategy'])
            throw new CliFailure(
              EXIT.failed,
              `${printable(stringAt(objectAt(machine, 'metadata'), 'name') || text)} is stopped: start it`,
            );
          return again(spec, options.at);
        },
        options,
      ),
    );
};
