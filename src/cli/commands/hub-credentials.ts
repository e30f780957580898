import { InvalidArgumentError, Option, type Command } from 'commander';
import type { JsonObject } from '../../domain/json.ts';
import { withoutEmpty } from '../../domain/json-tools.ts';
import type { HubCheckAnswer, HubDetails } from '../../http/ledger/hub-operations.ts';
import type { ApiClient } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { forceOption } from './hub-add.ts';
import { kubeconfigIn, readStdin } from './hub-files.ts';
import { automationIn, type AutomationOptions } from './hub-options.ts';
import { annotateHub } from './hub-annotations.ts';
import { DOCUMENTS, HUBS, pathOf, repeatable } from './hub-paths.ts';
import { checkText, refuse } from './hub-text.ts';

const CLUSTER = 'fulfillment-ledger/cluster';

type CredentialOptions = Omit<AutomationOptions, 'templatePrefix'> & {
  readonly kubeconfig?: string;
  readonly mode?: string;
  readonly acceptCluster?: string;
  readonly force: boolean;
};

/** `ledgerctl hubs credentials`: new secrets of a hub and of its automation, tried before they are handed over. */
export const addHubCredentialsCommand = (hubs: Command, { client, io }: Connection): void => {
  hubs
    .command('credentials')
    .argument('<id>', 'id of the hub')
    .description(
      'check other secrets and give them to a hub or its automation; work that waits for them goes on',
    )
    .option('--kubeconfig <file>', 'the new kubeconfig; - is stdin')
    .option('--token-file <file>', 'file with the new bearer token of the listener or platform')
    .option('--hmac-secret-file <file>', 'file with the new key that signs webhooks')
    .option('--ca-file <file>', 'new certificate authority of the listener or platform, PEM')
    .addOption(
      new Option(
        '--mode <mode>',
        'automation that the token, key and authority belong to (default: the mode of the hub); orders of a former mode keep their own',
      ).choices(['eda', 'aap']),
    )
    .option(
      '--accept-cluster <uid>',
      'the hub was rebuilt and is the cluster with this uid from now on; orders that it does not hold are lost',
    )
    .addOption(forceOption())
    .addHelpText(
      'after',
      examples(
        'hubs credentials hub-north-1 --kubeconfig north-2027.yaml',
        'hubs credentials hub-north-1 --token-file automation.token --hmac-secret-file webhook.hmac',
        'hubs credentials hub-north-1 --mode eda --token-file automation.token',
      ),
    )
    .action(async (id: string, options: CredentialOptions) => {
      const given = await givenIn(options, readStdin(io));
      const api = await client();
      const modes = isEmpty(given.automation) ? undefined : await modesOf(api, id, options.mode);
      const asked = withoutEmpty({ ...given, mode: modes?.of });
      const { acceptCluster: cluster } = options;
      const leads = given.kubeconfig !== '';
      const known = leads ? (await api.get<HubDetails>(pathOf(HUBS, id))).cluster : undefined;
      const body = leads ? withoutEmpty({ ...asked, cluster }) : asked;
      const check = await api.send<HubCheckAnswer>('POST', pathOf(HUBS, id, 'check'), body);
      io.err(`${checkText(check)}${leads ? comparedText(check, known) : ''}`);
      const counts = leads || cluster !== undefined;
      // A kubeconfig that is not changed is no reason to keep a token that is refused.
      const problems = check.problems
        .filter(({ code }) => counts || code === 'AutomationFailing')
        .filter(({ code, subject }) => code !== 'DifferentCluster' || subject !== cluster);
      refuse(problems, options.force, `hub ${id} keeps the credentials that it has`);
      const spec = withoutEmpty({ ...given, automation: placed(given.automation, modes) });
      if (cluster === undefined) await api.send('PATCH', pathOf(DOCUMENTS, id), { spec }, repeatable());
      else await annotateHub(api, id, [CLUSTER, cluster], withoutEmpty({ spec }));
      io.out(`hub ${id}: ${cluster === undefined ? 'has new credentials' : `is cluster ${cluster}`}\n`);
    });
};

type Given = { readonly kubeconfig: string; readonly automation: JsonObject };

/** What the hub is to have. Throws InvalidArgumentError when that is nothing. */
const givenIn = async (options: CredentialOptions, stdin: () => Promise<string>): Promise<Given> => {
  const { kubeconfig, mode, acceptCluster } = options;
  const automation = await automationIn(options, stdin);
  if (kubeconfig === undefined && acceptCluster === undefined && isEmpty(automation))
    throw new InvalidArgumentError(
      'nothing to change: give --kubeconfig, --token-file, --hmac-secret-file, --ca-file or --accept-cluster',
    );
  if (mode !== undefined && isEmpty(automation))
    throw new InvalidArgumentError('--mode says whose --token-file, --hmac-secret-file or --ca-file it is');
  return { kubeconfig: kubeconfig === undefined ? '' : await kubeconfigIn(kubeconfig, stdin), automation };
};

/** What cannot be compared is taken, and said. */
const comparedText = ({ cluster }: HubCheckAnswer, known: string | undefined): string => {
  if (cluster === undefined) return '  the cluster does not show its identity, so it was not compared\n';
  return known === undefined ? '  no cluster is known of this hub yet: there was nothing to compare\n' : '';
};

const isEmpty = (value: JsonObject): boolean => Object.keys(value).length === 0;

/** The mode whose secrets are meant, and the one that the hub is in. */
type Modes = { readonly of: string; readonly now: string };

const modesOf = async (api: ApiClient, id: string, wanted: string | undefined): Promise<Modes> => {
  const { mode: now } = await api.get<HubDetails>(pathOf(HUBS, id));
  if (wanted === undefined && now === 'operator')
    throw new InvalidArgumentError(
      `hub ${id} is in mode operator, in which no automation is called: say with --mode whose secrets they are`,
    );
  return { of: wanted ?? now, now };
};

/** What is for orders of another mode has a place of its own (`spec.automation.eda`, `spec.automation.aap`). */
const placed = (automation: JsonObject, modes: Modes | undefined): JsonObject =>
  modes === undefined || modes.of === modes.now ? automation : { [modes.of]: automation };
