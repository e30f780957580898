import { InvalidArgumentError, Option, type Command } from 'commander';
import type { JsonObject } from '../../domain/json.ts';
import { objectAt, withoutEmpty } from '../../domain/json-tools.ts';
import { kubeconfigIn, textIn } from './hub-files.ts';
import { positive, wholeNumber } from './resource-context.ts';

/** How the automation of a hub is called; secrets are read from files. */
export type AutomationOptions = {
  readonly tokenFile?: string;
  readonly hmacSecretFile?: string;
  readonly caFile?: string;
  readonly templatePrefix?: string;
};

/** How orders are carried out on a hub: what it needs for them depends on this. */
export type WayOptions = AutomationOptions & {
  readonly mode?: string;
  readonly controller?: string;
  readonly endpoint?: string;
  readonly tenantNamespaces: boolean;
};

export type HubOptions = WayOptions & {
  readonly id: string;
  readonly name?: string;
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly zone?: string;
  readonly template: readonly string[];
  readonly controlPlanes?: number;
  readonly nodes: readonly string[];
  readonly callsPerSecond?: number;
  readonly burst?: number;
  readonly cordoned: boolean;
};

const withAutomationOptions = (command: Command): Command =>
  command
    .option('--token-file <file>', 'file with the bearer token of the listener or platform')
    .option('--hmac-secret-file <file>', 'file with the key that signs webhooks')
    .option('--ca-file <file>', 'certificate authority of the listener or platform, PEM')
    .option('--template-prefix <prefix>', 'job templates are <prefix>-create-hosted-cluster and so on');

export const withWayOptions = (command: Command): Command =>
  withAutomationOptions(
    command
      .addOption(new Option('--mode <mode>', 'starter of the automation').choices(['operator', 'eda', 'aap']))
      .addOption(
        new Option('--controller <who>', 'reconciler of the orders there').choices(['operator', 'ledger']),
      )
      .option('--endpoint <url>', 'modes eda and aap: address of the webhook listener or of the platform'),
  ).option('--tenant-namespaces', 'a namespace for each tenant, made when first needed', false);

export const withHubOptions = (command: Command): Command =>
  withWayOptions(
    command
      .requiredOption('--id <id>', 'id of the hub: lower-case letters, digits and -')
      .option('--name <name>', 'its name; default: from the id')
      .requiredOption('--kubeconfig <file>', 'kubeconfig of the management cluster; - is stdin')
      .requiredOption('--namespace <name>', 'namespace of the orders there, at most 23 characters'),
  )
    .option('--zone <zone>', 'zone that orders may ask for')
    .option('--template <id...>', 'templates that it offers; default: all', [])
    .option('--control-planes <n>', 'hosted control planes it can carry; default: unlimited', controlPlanes)
    .option('--nodes <class=n...>', 'nodes of a host type it can carry; default: as the hub shows', [])
    .option('--calls-per-second <n>', 'how fast the hub is called on average; default: 20', decimal)
    .option('--burst <n>', 'calls at once after a rest; default: twice as many as a second', positive)
    .option('--cordoned', 'place no orders on it yet', false);

const decimal = (text: string): number => {
  if (!/^\d{1,5}(\.\d{1,3})?$/.test(text) || Number(text) === 0)
    throw new InvalidArgumentError(`"${text}" is not a number above 0, such as 20`);
  return Number(text);
};

/** In the document 0 is as good as absent, which means unlimited. */
const controlPlanes = (text: string): number => {
  const count = wholeNumber(text);
  if (count === 0)
    throw new InvalidArgumentError('0 would mean unlimited; use --cordoned to place no orders on the hub');
  return count;
};

/** `fc430=12` … Throws InvalidArgumentError. */
const counts = (texts: readonly string[]): JsonObject => {
  const found = new Map<string, number>();
  for (const text of texts) {
    const [, hostType, count] = /^([^=]+)=(\d{1,9})$/.exec(text) ?? [];
    if (hostType === undefined) throw new InvalidArgumentError(`"${text}" is not of the form class=number`);
    if (found.has(hostType)) throw new InvalidArgumentError(`"${hostType}" is given twice`);
    found.set(hostType, Number(count));
  }
  return Object.fromEntries(found);
};

/** What is said of options that do not go together; undefined when they do. */
const misfit = ({ mode = 'operator', endpoint, controller }: WayOptions): string | undefined => {
  if (mode !== 'operator')
    return endpoint === undefined
      ? `--mode ${mode} needs --endpoint, the address of the webhook listener or of the platform`
      : undefined;
  if (endpoint !== undefined) return '--endpoint is for --mode eda and --mode aap';
  return controller === 'ledger' ? '--controller ledger is for --mode eda and --mode aap' : undefined;
};

/** `spec.automation`; secrets are read from files, never from arguments, which everybody on a machine sees. */
export const automationIn = async (
  options: AutomationOptions,
  stdin: () => Promise<string>,
): Promise<JsonObject> => {
  const secret = async (file: string | undefined): Promise<string> =>
    file === undefined ? '' : (await textIn(file, stdin)).trim();
  return withoutEmpty({
    token: await secret(options.tokenFile),
    hmac_secret: await secret(options.hmacSecretFile),
    ca: options.caFile === undefined ? '' : await textIn(options.caFile, stdin),
    template_prefix: options.templatePrefix,
  });
};

/** The part of `spec` that says which rights are needed. Throws InvalidArgumentError for options that do not fit. */
export const wayIn = async (
  options: WayOptions & { readonly kubeconfig: string; readonly namespace: string },
  stdin: () => Promise<string>,
): Promise<JsonObject> => {
  const { mode = 'operator', endpoint } = options;
  const wrong = misfit(options);
  if (wrong !== undefined) throw new InvalidArgumentError(wrong);
  return withoutEmpty({
    kubeconfig: await kubeconfigIn(options.kubeconfig, stdin),
    namespace: options.namespace,
    mode: options.mode,
    controller: options.controller,
    endpoints: endpoint === undefined ? {} : { [mode]: endpoint },
    automation: await automationIn(options, stdin),
    ...(options.tenantNamespaces ? { tenant_namespaces: true } : {}),
  });
};

/** The document to register. Throws InvalidArgumentError for options that do not fit. */
export const hubDocument = async (options: HubOptions, stdin: () => Promise<string>): Promise<JsonObject> => {
  const { callsPerSecond, burst } = options;
  const spec = withoutEmpty({
    ...(await wayIn(options, stdin)),
    zone: options.zone,
    templates: [...options.template],
    capacity: withoutEmpty({ control_planes: options.controlPlanes, nodes: counts(options.nodes) }),
    pacing: withoutEmpty({ calls_per_second: callsPerSecond, burst }),
    scheduling: options.cordoned ? 'cordoned' : undefined,
  });
  return { id: options.id, metadata: options.name === undefined ? {} : { name: options.name }, spec };
};

/** What is asked to be checked before a hub of that document is registered: everything that says which rights it needs. */
export const checkOfDocument = (document: JsonObject): JsonObject => {
  const spec = objectAt(document, 'spec');
  return { ...checkOfSpec(spec), ...withoutEmpty({ id: document['id'] }) };
};

/** The same of a hub that has no id yet. */
export const checkOfSpec = (spec: JsonObject): JsonObject => {
  const { kubeconfig, namespace, mode, endpoints, automation, controller, tenant_namespaces: own } = spec;
  return withoutEmpty({
    kubeconfig,
    namespace,
    mode,
    ...(mode === undefined ? {} : { endpoints, automation }),
    controller,
    tenant_namespaces: own,
  });
};
