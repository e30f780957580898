import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Connection } from '../connection.ts';
import { createConsole, type Console, type ConsoleOptions } from '../console/connect.ts';
import { runTerminal } from '../console/terminal.ts';
import { runViewer } from '../console/viewer.ts';
import { examples } from '../examples.ts';
import { parseDuration } from '../output.ts';
import { nameOf, PREFIX } from '../resources/resource-api.ts';
import { withTenant, type ResourceContext } from './resource-context.ts';

type Machine = { readonly name: string; readonly id: string };
type MachineOptions = { readonly tenant?: string };

const SESSIONS = `${PREFIX.public}/console_sessions`;
const MACHINE = 'compute_instance';
const pauseFor: ConsoleOptions['pause'] = (ms, signal) => sleep(ms, undefined, { signal });

/** `ledgerctl console`: a machine as if one sat before it. */
export const addConsoleCommand = (
  program: Command,
  { client, socket, io }: Connection,
  context: ResourceContext,
  pause = pauseFor,
): void => {
  const find = async (text: string, options: MachineOptions): Promise<Machine> => {
    const api = await context.open({ ...options, private: false });
    const kind = context.names.find(MACHINE);
    const found = await api.one(kind, text);
    return { name: nameOf(kind, found), id: stringAt(found, 'id') };
  };
  const leavingOn = (): AbortController => {
    const leaving = new AbortController();
    io.interrupted?.addEventListener('abort', () => leaving.abort());
    return leaving;
  };
  const say = (line: string): void => io.err(`${line}\n`);
  const sessionOf = ({ id }: Machine, type: 'SERIAL' | 'VNC'): JsonObject => ({
    resource_type: 'CONSOLE_RESOURCE_TYPE_COMPUTE_INSTANCE',
    resource_id: id,
    type: `CONSOLE_TYPE_${type}`,
    // The next connection takes the place of the one that was lost, which the service may not have noticed.
    client_id: context.newKey(),
  });
  const ask = async (session: JsonObject, headers = {}): Promise<JsonObject> =>
    (await client()).send('POST', SESSIONS, session, headers);
  const consoleOf = (machine: Machine, type: 'SERIAL' | 'VNC', signal: AbortSignal): Console => {
    const session = sessionOf(machine, type);
    return createConsole({
      ticket: async () => stringAt(await ask(session), 'ticket'),
      open: (ticket) => socket(`${SESSIONS}/connect`, ticket),
      retrying: (why, ms) => say(`${why}; trying again in ${ms / 1000} s`),
      pause,
      signal,
    });
  };

  const group = program
    .command('console')
    .description('the serial console or the screen of a compute instance that runs');
  withTenant(
    group
      .command('serial', { isDefault: true })
      .description('the serial console of a compute instance, in this terminal')
      .argument('<machine>', 'id or name of a compute instance')
      .option('--no-tty', 'take the input as it is: no Ctrl+], and what is typed is sent line by line')
      .option(
        '--linger <time>',
        'silence of a machine after the end of piped input that ends the console',
        '2s',
      )
      .addHelpText(
        'after',
        examples('console serial web', 'console web', "console serial web --no-tty <<< 'uname -a'"),
      ),
  ).action(async (text: string, options: MachineOptions & { tty: boolean; linger: string }) => {
    const streams = io.rawStreams?.();
    if (streams === undefined) throw new InvalidArgumentError('a console needs an input and an output');
    const lingerMs = parseDuration(options.linger) * 1000;
    const machine = await find(text, options);
    const leaving = leavingOn();
    const { input, output } = streams;
    await runTerminal({
      console: consoleOf(machine, 'SERIAL', leaving.signal),
      streams: options.tty ? streams : { input, output },
      say,
      name: machine.name,
      leaving,
      lingerMs,
    });
  });
  withTenant(
    group
      .command('vnc')
      .description('the screen of a compute instance, for a VNC viewer of this computer')
      .argument('<machine>', 'id or name of a compute instance')
      .option('--port <port>', 'port of 127.0.0.1 (default: one that is free)', portOf, 0)
      .addHelpText('after', examples('console vnc web', 'console vnc web --port 5900')),
  ).action(async (text: string, options: MachineOptions & { port: number }) => {
    const machine = await find(text, options);
    const { signal } = leavingOn();
    // What is refused is said before anybody starts a viewer.
    await ask(sessionOf(machine, 'VNC'), { 'x-dry-run': 'true' });
    await runViewer({
      console: () => consoleOf(machine, 'VNC', signal),
      port: options.port,
      listening: (port) => {
        io.out(`vnc://127.0.0.1:${port}\n`);
        say(`connect a VNC viewer to the screen of ${machine.name} there; press Ctrl+C to end`);
      },
      say,
      signal,
    });
  });
};

const portOf = (text: string): number => {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError(`"${text}" is not a port: 0 to 65535`);
  return Number(text);
};
