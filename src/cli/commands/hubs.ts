import { randomUUID } from 'node:crypto';
import { Option, type Command } from 'commander';
import { isObject, objectAt, stringAt, textOf } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ApiClient } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { table } from '../output.ts';
import { checkOfDocument, hubDocument, withHubOptions, type HubOptions } from './hub-options.ts';
import { checkText, hubText, type CheckAnswer, type HubAnswer } from './hub-text.ts';
import { kubeconfigIn, readStdin } from './hub-files.ts';

const HUBS = '/api/ledger/v1/hubs';
const DOCUMENTS = '/api/private/v1/hubs';
const DECOMMISSION = 'fulfillment-ledger/decommission';

type Order = {
  readonly id: string;
  readonly name?: string;
  readonly tenant?: string;
  readonly state: string;
};

/** `ledgerctl hubs`: the life of management clusters, from the first look at one to its end. */
export const addHubCommands = (program: Command, connection: Connection): void => {
  const hubs = program
    .command('hubs')
    .description('management clusters: register, check, close, drain, remove');
  addLooking(hubs, connection);
  addRegistering(hubs, connection);
  addScheduling(hubs, connection);
  addRemoving(hubs, connection);
};

const pathOf = (base: string, id: string, ...rest: readonly string[]): string =>
  [base, encodeURIComponent(id), ...rest].join('/');

/** A write that may be sent again when its answer was lost. */
const repeatable = (): Record<string, string> => ({ 'idempotency-key': randomUUID() });

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

const addLooking = (hubs: Command, { client, io }: Connection): void => {
  hubs
    .command('list')
    .description('hubs and what is wrong with each')
    .option('--json', 'as JSON', false)
    .addHelpText('after', examples('hubs list'))
    .action(async ({ json: asJson }: { json: boolean }) => {
      const { items = [] } = await (await client()).get<{ items?: HubAnswer[] }>(HUBS);
      if (asJson) return io.out(json(items));
      if (items.length === 0) return io.err('no hub is registered: ledgerctl hubs add --help\n');
      const rows = items.map((hub) => [
        hub.id,
        hub.adapter,
        hub.mode,
        hub.zone,
        hub.scheduling,
        hub.health,
        hub.version,
        hub.message,
      ]);
      const header = ['id', 'adapter', 'mode', 'zone', 'orders', 'health', 'version', 'message'];
      return io.out(`${table(header, rows)}\n`);
    });
  hubs
    .command('show')
    .argument('<id>', 'id of the hub')
    .description('one hub: problems and since when, capacity, hosts, orders by state, its lane')
    .option('--json', 'as JSON', false)
    .addHelpText('after', examples('hubs show hub-north-1'))
    .action(async (id: string, { json: asJson }: { json: boolean }) => {
      const hub = await (await client()).get<HubAnswer>(pathOf(HUBS, id));
      io.out(asJson ? json(hub) : hubText(hub));
    });
  hubs
    .command('orders')
    .argument('<id>', 'id of the hub')
    .description('orders that are on a hub or have a place there')
    .option('--json', 'as JSON', false)
    .addHelpText('after', examples('hubs orders hub-north-1'))
    .action(async (id: string, { json: asJson }: { json: boolean }) => {
      const items = await ordersOf(await client(), id);
      if (asJson) return io.out(json(items));
      if (items.length === 0) return io.err(`no order has a place on hub ${id}\n`);
      const rows = items.map((order) => [order.id, order.name, order.tenant, order.state]);
      return io.out(`${table(['id', 'name', 'tenant', 'state'], rows)}\n`);
    });
  hubs
    .command('check')
    .argument('[id]', 'id of a registered hub')
    .description('connect now and say what is wrong; without an id, to a hub that is not registered yet')
    .option('--kubeconfig <file>', 'other credentials than the hub has, or those of a new one; - is stdin')
    .option('--namespace <name>', 'where orders will be created on a new hub')
    .option('--json', 'as JSON', false)
    .addHelpText(
      'after',
      examples('hubs check hub-north-1', 'hubs check --kubeconfig north.yaml --namespace osac-hub'),
    )
    .action(async (id: string | undefined, options: CheckOptions) => {
      const check = await checkOf(await client(), id, options, readStdin(io));
      io.out(options.json ? json(check) : checkText(check));
      if (!check.ok) throw new CliFailure(EXIT.failed, `hub ${check.id} is not ready for orders`);
    });
};

type CheckOptions = { readonly kubeconfig?: string; readonly namespace?: string; readonly json: boolean };

const checkOf = async (
  api: ApiClient,
  id: string | undefined,
  { kubeconfig, namespace }: Pick<CheckOptions, 'kubeconfig' | 'namespace'>,
  stdin: () => Promise<string>,
): Promise<CheckAnswer> => {
  const body = kubeconfig === undefined ? {} : { kubeconfig: await kubeconfigIn(kubeconfig, stdin) };
  if (id !== undefined) return api.send<CheckAnswer>('POST', pathOf(HUBS, id, 'check'), body);
  if (kubeconfig === undefined || namespace === undefined)
    throw new CliFailure(EXIT.usage, 'give the id of a hub, or --kubeconfig and --namespace of a new one');
  return api.send<CheckAnswer>('POST', `${HUBS}/check`, { ...body, namespace });
};

const addRegistering = (hubs: Command, { client, io }: Connection): void => {
  const force = (): Option =>
    new Option('--force', 'also when the check finds something wrong').default(false);
  withHubOptions(
    hubs
      .command('add')
      .description('check a hub and register it; nothing is registered when something is wrong with it'),
  )
    .addOption(force())
    .addHelpText(
      'after',
      examples(
        'hubs add --id hub-north-1 --kubeconfig north.yaml --namespace osac-hub --zone north',
        'hubs add --id hub-west-1 --kubeconfig west.yaml --namespace osac-hub --mode aap --endpoint https://aap.example/api/controller --token-file aap.token',
      ),
    )
    .action(async (options: HubOptions & { readonly force: boolean }) => {
      const api = await client();
      const document = await hubDocument(options, readStdin(io));
      const check = await api.send<CheckAnswer>('POST', `${HUBS}/check`, checkOfDocument(document));
      io.err(checkText(check));
      refuse(check, options.force, `hub ${options.id} was not registered`);
      await api.send('POST', DOCUMENTS, document, repeatable());
      io.out(`hub ${options.id}: registered; ledgerctl hubs show ${options.id}\n`);
    });
  hubs
    .command('credentials')
    .argument('<id>', 'id of the hub')
    .description('check another kubeconfig and give it to a hub; what waits for it goes on by itself')
    .requiredOption('--kubeconfig <file>', 'the new kubeconfig; - is stdin')
    .addOption(force())
    .addHelpText('after', examples('hubs credentials hub-north-1 --kubeconfig north-2027.yaml'))
    .action(async (id: string, options: { readonly kubeconfig: string; readonly force: boolean }) => {
      const api = await client();
      const kubeconfig = await kubeconfigIn(options.kubeconfig, readStdin(io));
      const check = await api.send<CheckAnswer>('POST', pathOf(HUBS, id, 'check'), { kubeconfig });
      io.err(checkText(check));
      refuse(check, options.force, `hub ${id} keeps the credentials that it has`);
      await api.send('PATCH', pathOf(DOCUMENTS, id), { spec: { kubeconfig } }, repeatable());
      io.out(`hub ${id}: has new credentials\n`);
    });
};

const refuse = (check: CheckAnswer, force: boolean, consequence: string): void => {
  if (!check.ok && !force) throw new CliFailure(EXIT.failed, `${consequence}; mend it, or give --force`);
};

const addScheduling = (hubs: Command, { client, io }: Connection): void => {
  for (const [verb, scheduling, description] of [
    ['cordon', 'cordoned', 'place no new orders on a hub; what is there goes on'],
    ['uncordon', 'open', 'place orders on a hub again'],
    ['drain', 'draining', 'place no new orders on a hub, and say what is still there'],
  ] as const)
    hubs
      .command(verb)
      .argument('<id>', 'id of the hub')
      .description(description)
      .addHelpText('after', examples(`hubs ${verb} hub-north-1`))
      .action(async (id: string) => {
        const api = await client();
        await api.send('PATCH', pathOf(DOCUMENTS, id), { spec: { scheduling } }, repeatable());
        if (verb === 'drain') {
          const states = objectAt(await api.get<JsonObject>(pathOf(HUBS, id)), 'orders');
          io.out(`hub ${id}: draining; ${leftText(id, states)}\n`);
        } else io.out(`hub ${id}: ${scheduling}\n`);
      });
};

const leftText = (id: string, states: JsonObject): string => {
  const counted = Object.entries(states).map(([state, count]) => `${textOf(count)} ${state}`);
  return counted.length === 0
    ? 'no order is on it any more'
    : `still on it: ${counted.join(', ')} (ledgerctl hubs orders ${id})`;
};

const addRemoving = (hubs: Command, { client, io }: Connection): void => {
  hubs
    .command('remove')
    .argument('<id>', 'id of the hub')
    .description('deregister a hub; refused while orders are on it')
    .option(
      '--force',
      'give it up with its orders: it stays visible, with them, until the last has left',
      false,
    )
    .addHelpText('after', examples('hubs remove hub-north-1', 'hubs remove hub-north-1 --force'))
    .action(async (id: string, { force }: { force: boolean }) => {
      const api = await client();
      if (force) await giveUp(api, id);
      await api.send('DELETE', pathOf(DOCUMENTS, id), undefined, repeatable());
      const left = force ? await ordersOf(api, id).catch(() => []) : [];
      io.out(
        left.length === 0
          ? `hub ${id}: removed\n`
          : `hub ${id}: goes when the last of ${left.length} orders has left it (ledgerctl hubs orders ${id})\n`,
      );
    });
};

/** Annotations are replaced as a whole, so the others are sent again; somebody else's change meanwhile is a conflict. */
const giveUp = async (api: ApiClient, id: string): Promise<void> => {
  const { value, etag } = await api.tagged<JsonObject>(pathOf(DOCUMENTS, id));
  const annotations = objectAt(objectAt(value, 'metadata'), 'annotations');
  if (stringAt(annotations, DECOMMISSION) === 'force') return;
  const body = { metadata: { annotations: { ...annotations, [DECOMMISSION]: 'force' } } };
  await api.send('PATCH', pathOf(DOCUMENTS, id), body, {
    ...repeatable(),
    ...(etag === undefined ? {} : { 'if-match': etag }),
  });
};

/** All of them, page by page. */
const ordersOf = async (api: ApiClient, id: string): Promise<readonly Order[]> => {
  const items: Order[] = [];
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const page: { items?: Order[]; next_offset?: number } = await api.get(
      `${pathOf(HUBS, id, 'orders')}?limit=1000&offset=${offset}`,
    );
    items.push(...(page.items ?? []).filter((order) => isObject(order as unknown as JsonObject)));
    offset = page.next_offset;
  }
  return items;
};
