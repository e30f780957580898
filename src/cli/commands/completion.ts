import { Argument, type Command, type Option } from 'commander';
import { own } from '../../domain/json-tools.ts';
import { nameOf } from '../resources/resource-api.ts';
import type { ResourceContext } from './resource-context.ts';

/** Commands whose first argument is a kind, and whose others are ids or names. */
const ABOUT_KINDS = ['get', 'describe', 'delete', 'label', 'annotate', 'scale'];
/** Commands whose first argument is the id or name of an object of one kind. */
const ABOUT_ONE: { readonly [command: string]: string } = {
  kubeconfig: 'cluster',
  password: 'cluster',
  attach: 'external_ip',
  detach: 'external_ip',
  start: 'compute_instance',
  stop: 'compute_instance',
  restart: 'compute_instance',
};

const BASH = `_ledgerctl() {
  local IFS=$'\\n'
  COMPREPLY=($(ledgerctl __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _ledgerctl ledgerctl
`;

/** Where `ledgerctl` is no command: a function of that name is found by what is typed and by what completes. */
const FROM_HERE = 'ledgerctl() { npx ledgerctl "$@"; }; source <(ledgerctl completion bash)';

/** `ledgerctl completion`: a script for the shell, which asks the hidden `__complete` with every Tab. */
export const addCompletionCommand = (program: Command, context: ResourceContext): void => {
  program
    .command('completion')
    .description('print a script that completes commands, options, kinds and names of objects')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash']))
    .addHelpText(
      'after',
      `
Examples:
  source <(ledgerctl completion bash)                                 # where ledgerctl is on the PATH (npm link)
  ${FROM_HERE}    # in the folder of this project
`,
    )
    .action(() => context.io.out(BASH));
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => {
      const found = await candidates(program, context, words);
      const begun = words.at(-1) ?? '';
      for (const candidate of found) if (candidate.startsWith(begun)) context.io.out(`${candidate}\n`);
    });
};

const candidates = async (
  program: Command,
  context: ResourceContext,
  words: readonly string[],
): Promise<readonly string[]> => {
  const { command, operands, awaited } = position(program, words.slice(0, -1));
  if (awaited !== undefined) return awaited.argChoices ?? [];
  if (words.at(-1)?.startsWith('-') === true)
    return [command, program].flatMap(({ options }) => options.flatMap(({ long }) => long ?? []));
  const commands = command.commands.map((each) => each.name()).filter((name) => !name.startsWith('_'));
  if (commands.length > 0) return commands;
  const one = own(ABOUT_ONE, command.name());
  if (one !== undefined) return operands.length === 0 ? namesOf(context, one) : [];
  if (!ABOUT_KINDS.includes(command.name()))
    return command.registeredArguments[operands.length]?.argChoices ?? [];
  const [kind] = operands;
  if (kind === undefined)
    return context.names.all.flatMap(({ kind: { collection }, singular }) => [singular, collection]);
  return namesOf(context, kind);
};

/** The command that these words are about, its operands so far, and an option that still waits for its value. */
const position = (program: Command, words: readonly string[]) => {
  let command = program;
  let awaited: Option | undefined;
  const operands: string[] = [];
  for (const word of words) {
    if (awaited !== undefined) awaited = undefined;
    else if (word.startsWith('-')) {
      const option = [command, program]
        .flatMap(({ options }) => options)
        .find(({ short, long }) => word === short || word === long);
      awaited = option?.required === true ? option : undefined;
    } else {
      const next = command.commands.find((each) => each.name() === word);
      if (next === undefined) operands.push(word);
      else command = next;
    }
  }
  return { command, operands, awaited };
};

/** As many as anybody looks through; none when the service does not say. */
const NAMES = 100;

const namesOf = async (context: ResourceContext, text: string): Promise<readonly string[]> => {
  try {
    const kind = context.names.find(text);
    const api = await context.open({ private: false });
    const objects = await api.list(kind, { limit: NAMES });
    return objects.map((object) => nameOf(kind, object).slice(kind.singular.length + 1));
  } catch {
    return [];
  }
};
