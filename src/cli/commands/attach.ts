import { type Command, InvalidArgumentError, Option } from 'commander';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { notFound } from '../exit.ts';
import { nameOf } from '../resources/resource-api.ts';
import { targetOf, withScope, type ResourceContext, type Scope } from './resource-context.ts';

type AttachOptions = Scope & {
  readonly endpoint?: string;
  readonly name?: string;
  readonly dryRun: boolean;
};

const ENDPOINTS = ['api', 'ingress'];
const [IP, ATTACHMENT] = ['external_ip', 'external_ip_attachment'];

/** `ledgerctl attach`: an external IP for something that is to be reached by it. */
export const addAttachCommand = (program: Command, context: ResourceContext): void => {
  withScope(
    program
      .command('attach')
      .description('attach an external IP to a cluster, a compute instance or a bare-metal instance')
      .argument('<ip>', 'id or name of an external IP')
      .argument('<target>', 'the cluster or machine, as kind/name')
      .addOption(new Option('--endpoint <endpoint>', 'API or ingress of the cluster').choices(ENDPOINTS))
      .option('--name <name>', 'name of the attachment (default: name of the external IP)')
      .option('--dry-run', 'check it, but change nothing', false)
      .addHelpText(
        'after',
        '\nExamples:\n  ledgerctl attach web cluster/shop --endpoint api\n  ledgerctl attach web computeinstance/vm1\n  ledgerctl detach web\n',
      ),
  ).action(async (ipText: string, targetText: string, options: AttachOptions) => {
    if (!targetText.includes('/'))
      throw new InvalidArgumentError(
        `"${targetText}" is not of the form kind/name, for example cluster/shop`,
      );
    const target = targetOf(context.names, [targetText]);
    const { endpoint, dryRun } = options;
    if (target.kind.kind.kind === 'cluster' && endpoint === undefined)
      throw new InvalidArgumentError(`a cluster needs --endpoint: ${ENDPOINTS.join(' or ')}`);
    const api = await context.open(options);
    const ipKind = context.names.find(IP);
    const kind = context.names.find(ATTACHMENT);
    const ip = await api.one(ipKind, ipText);
    const object = await api.one(target.kind, target.name);
    const named = objectAt(ip, 'metadata');
    const document: JsonObject = {
      metadata: {
        name: options.name ?? stringAt(named, 'name'),
        tenant: stringAt(named, 'tenant'),
        ...(stringAt(named, 'project') === '' ? {} : { project: stringAt(named, 'project') }),
      },
      spec: {
        external_ip: { id: stringAt(ip, 'id') },
        // The field of a target is called as its collection is, in the singular.
        [target.kind.kind.collection.slice(0, -1)]: { id: stringAt(object, 'id') },
        ...(endpoint === undefined
          ? {}
          : { target_endpoint: `EXTERNAL_IP_ATTACHMENT_ENDPOINT_${endpoint.toUpperCase()}` }),
      },
    };
    const made = await api.create(kind, document, { key: context.newKey(), dryRun });
    const where = `${nameOf(target.kind, object)}${endpoint === undefined ? '' : `, ${endpoint}`}`;
    const how = dryRun ? ' (dry run)' : ` (${nameOf(kind, made)})`;
    context.io.out(`${nameOf(ipKind, ip)} attached to ${where}${how}\n`);
  });
};

/** `ledgerctl detach`: deletes the attachment of an external IP. */
export const addDetachCommand = (program: Command, context: ResourceContext): void => {
  withScope(
    program
      .command('detach')
      .description('detach an external IP from what it is attached to; the external IP stays')
      .argument('<ip>', 'id or name of an external IP')
      .addHelpText('after', '\nExamples:\n  ledgerctl detach web\n'),
  ).action(async (ipText: string, options: Scope) => {
    const api = await context.open(options);
    const ipKind = context.names.find(IP);
    const kind = context.names.find(ATTACHMENT);
    const ip = await api.one(ipKind, ipText);
    const filter = `this.spec.external_ip.id == ${JSON.stringify(stringAt(ip, 'id'))}`;
    const [attachment] = await api.list(kind, { filter, limit: 1 });
    if (attachment === undefined)
      throw notFound(`${nameOf(ipKind, ip)} is not attached by an external IP attachment`);
    await api.remove(kind, stringAt(attachment, 'id'), { key: context.newKey() });
    context.io.out(`${nameOf(ipKind, ip)} detached (${nameOf(kind, attachment)} deleted)\n`);
  });
};
