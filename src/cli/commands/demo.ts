import { InvalidArgumentError, Option, type Command } from 'commander';
import type { CliActions, CliIo, DemoRequest } from '../connection.ts';
import { examples } from '../examples.ts';
import { parseDuration } from '../output.ts';
import { readStdin, textIn } from './hub-files.ts';
import { hubDocument, type HubOptions } from './hub-options.ts';

/** The hub that a demo registers; there is nothing else in its deployment. */
const HUB = 'demo-hub';
const TEMPLATE = 'osac.templates.ocp_small';

type DemoOptions = {
  readonly hub?: string;
  readonly hubNamespace: string;
  readonly hubMode?: string;
  readonly hubController?: string;
  readonly hubEndpoint?: string;
  readonly hubTokenFile?: string;
  readonly hubHmacSecretFile?: string;
  readonly hubCaFile?: string;
  readonly hubTemplatePrefix?: string;
  readonly hubTenantNamespaces: boolean;
  readonly kafka?: readonly string[];
  readonly removeTopics: boolean;
  readonly catalog?: string;
  readonly template: string;
  readonly pullSecretFile?: string;
  readonly patience?: number;
};

/** `ledgerctl demo`: on simulated hubs, or on a real one that is given by its kubeconfig. */
export const addDemoCommand = (program: Command, actions: CliActions, io: CliIo): void => {
  program
    .command('demo')
    .description(
      'order, scale, crash, recover and delete clusters on a service of its own, and check what it claims',
    )
    .option('--hub <kubeconfig>', 'on this management cluster instead of simulated ones; - is stdin')
    .option('--hub-namespace <name>', 'namespace of the orders there', 'osac-hub')
    .addOption(
      new Option('--hub-mode <mode>', 'starter of the automation').choices(['operator', 'eda', 'aap']),
    )
    .addOption(
      new Option('--hub-controller <who>', 'reconciler of the orders there').choices(['operator', 'ledger']),
    )
    .option('--hub-endpoint <url>', 'modes eda and aap: address of the webhook listener or of the platform')
    .option('--hub-token-file <file>', 'file with the bearer token of the listener or platform')
    .option('--hub-hmac-secret-file <file>', 'file with the key that signs webhooks')
    .option('--hub-ca-file <file>', 'certificate authority of the listener or platform, PEM')
    .option('--hub-template-prefix <prefix>', 'job templates are <prefix>-create-hosted-cluster and so on')
    .option('--hub-tenant-namespaces', 'a namespace for each tenant there', false)
    .option(
      '--kafka <brokers>',
      'publish to these brokers, too, and show what a consumer reads: comma list of host:port, without passwords; topics are made, and stay there with the records; they must not hold records of another log',
      brokerList,
    )
    .option('--remove-topics', 'remove the topics that it made on these brokers when it ends', false)
    .option('--catalog <folder>', 'catalogue to order from; default: the one of the simulated hubs')
    .option('--template <id>', 'template of the two clusters', TEMPLATE)
    .option('--pull-secret-file <file>', 'pull secret of the two clusters')
    .option('--patience <time>', 'how long one wait may take; default: 30s, on a real hub 2h', parseDuration)
    .addHelpText(
      'after',
      examples(
        'demo',
        'demo --kafka localhost:9092 --remove-topics',
        'demo --hub hub.kubeconfig',
        'demo --hub hub.kubeconfig --hub-mode eda --hub-endpoint https://rulebook.example:5000 --hub-token-file eda.token --hub-hmac-secret-file eda.hmac',
      ),
    )
    .action(async (options: DemoOptions) => {
      process.exitCode = await actions.demo(await requestOf(options, io));
    });
};

const requestOf = async (options: DemoOptions, io: CliIo): Promise<DemoRequest> => {
  const stdin = readStdin(io);
  const { hub, kafka, catalog, template, pullSecretFile, patience } = options;
  if (
    hub === undefined &&
    Object.keys(options).some((name) => /^hub(Mode|Contr|Endp|Tok|Hm|Ca|Templ)/.test(name))
  )
    throw new InvalidArgumentError('options of a hub need --hub');
  if (options.removeTopics && kafka === undefined)
    throw new InvalidArgumentError('--remove-topics needs --kafka');
  return {
    template,
    ...(kafka === undefined ? {} : { kafka, removeTopics: options.removeTopics }),
    ...(catalog === undefined ? {} : { catalog }),
    ...(pullSecretFile === undefined ? {} : { pullSecret: (await textIn(pullSecretFile, stdin)).trim() }),
    ...(patience === undefined ? {} : { patienceMs: patience * 1000 }),
    ...(hub === undefined ? {} : { hub: await hubDocument(hubOptions(hub, options), stdin) }),
  };
};

const brokerList = (text: string): readonly string[] => {
  const brokers = text
    .split(',')
    .map((broker) => broker.trim())
    .filter((broker) => broker !== '');
  const wrong = brokers.find((broker) => !/^[^:\s]+:\d{1,5}$/.test(broker));
  if (wrong !== undefined || brokers.length === 0)
    throw new InvalidArgumentError(`"${wrong ?? text}" is not a broker such as localhost:9092`);
  return brokers;
};

const hubOptions = (kubeconfig: string, options: DemoOptions): HubOptions => {
  const { hubMode, hubController, hubEndpoint, hubTokenFile, hubHmacSecretFile, hubCaFile } = options;
  return {
    id: HUB,
    kubeconfig,
    namespace: options.hubNamespace,
    tenantNamespaces: options.hubTenantNamespaces,
    template: [],
    nodes: [],
    cordoned: false,
    ...(hubMode === undefined ? {} : { mode: hubMode }),
    ...(hubController === undefined ? {} : { controller: hubController }),
    ...(hubEndpoint === undefined ? {} : { endpoint: hubEndpoint }),
    ...(hubTokenFile === undefined ? {} : { tokenFile: hubTokenFile }),
    ...(hubHmacSecretFile === undefined ? {} : { hmacSecretFile: hubHmacSecretFile }),
    ...(hubCaFile === undefined ? {} : { caFile: hubCaFile }),
    ...(options.hubTemplatePrefix === undefined ? {} : { templatePrefix: options.hubTemplatePrefix }),
  };
};
