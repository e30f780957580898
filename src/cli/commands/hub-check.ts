import { InvalidArgumentError, type Command } from 'commander';
import type { JsonObject } from '../../domain/json.ts';
import { withoutEmpty } from '../../domain/json-tools.ts';
import type { HubCheckAnswer } from '../../http/ledger/hub-operations.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { kubeconfigIn, readStdin } from './hub-files.ts';
import { automationIn, checkOfSpec, wayIn, withWayOptions, type WayOptions } from './hub-options.ts';
import { HUBS, pathOf } from './hub-paths.ts';
import { checkText } from './hub-text.ts';

type CheckOptions = WayOptions & {
  readonly kubeconfig?: string;
  readonly namespace?: string;
  readonly json: boolean;
};

/** `ledgerctl hubs check`: of a registered hub, of it with other values, or of one that is to be registered. */
export const addCheckCommand = (hubs: Command, { client, io }: Connection): void => {
  withWayOptions(
    hubs
      .command('check')
      .argument('[id]', 'id of a registered hub')
      .description(
        'connect now and say what is wrong; without an id, with a hub that is not registered yet, given the options that it would be registered with',
      )
      .option('--kubeconfig <file>', 'other credentials than the hub has, or those of a new one; - is stdin')
      .option('--namespace <name>', 'namespace of the orders on a new hub'),
  )
    .option('--json', 'as JSON', false)
    .addHelpText(
      'after',
      examples(
        'hubs check hub-north-1',
        'hubs check --kubeconfig north.yaml --namespace osac-hub',
        'hubs check --kubeconfig west.yaml --namespace osac-hub --mode eda --controller ledger --endpoint https://rulebook.example:5000 --token-file automation.token --hmac-secret-file webhook.hmac',
        'hubs check hub-north-1 --mode aap --endpoint https://aap.example/api/controller --token-file aap.token',
      ),
    )
    .action(async (id: string | undefined, options: CheckOptions) => {
      const stdin = readStdin(io);
      const body = id === undefined ? await ofNewHub(options, stdin) : await ofHub(options, stdin);
      const path = id === undefined ? `${HUBS}/check` : pathOf(HUBS, id, 'check');
      const check = await (await client()).send<HubCheckAnswer>('POST', path, body);
      io.out(options.json ? `${JSON.stringify(check, null, 2)}\n` : checkText(check));
      if (!check.ok) throw new CliFailure(EXIT.failed, `hub ${check.id} is not ready for orders`);
    });
};

const ofNewHub = async (options: CheckOptions, stdin: () => Promise<string>): Promise<JsonObject> => {
  const { kubeconfig, namespace } = options;
  if (kubeconfig === undefined || namespace === undefined)
    throw new InvalidArgumentError('give the id of a hub, or --kubeconfig and --namespace of a new one');
  return checkOfSpec(await wayIn({ ...options, kubeconfig, namespace }, stdin));
};

/** Nothing: the hub as it is. What is named is tried instead of what it has. */
const ofHub = async (options: CheckOptions, stdin: () => Promise<string>): Promise<JsonObject> => {
  const { namespace, controller, tenantNamespaces, mode, endpoint, kubeconfig } = options;
  if (namespace !== undefined || controller !== undefined || tenantNamespaces)
    throw new InvalidArgumentError(
      '--namespace, --controller and --tenant-namespaces are for a hub that is not registered yet: leave out the id',
    );
  if (endpoint !== undefined && (mode === undefined || mode === 'operator'))
    throw new InvalidArgumentError('--endpoint needs --mode eda or --mode aap: whose address it is');
  return withoutEmpty({
    kubeconfig: kubeconfig === undefined ? undefined : await kubeconfigIn(kubeconfig, stdin),
    mode,
    endpoints: mode === undefined || endpoint === undefined ? {} : { [mode]: endpoint },
    automation: await automationIn(options, stdin),
  });
};
