import type { Command } from 'commander';
import type { HubDetails, HubOrder, HubOrders, HubSummary } from '../../http/ledger/hub-operations.ts';
import type { ApiClient } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { jsonText, table } from '../output.ts';
import { addAddCommand } from './hub-add.ts';
import { addCheckCommand } from './hub-check.ts';
import { addHubCredentialsCommand } from './hub-credentials.ts';
import { annotateHub } from './hub-annotations.ts';
import { DOCUMENTS, HUBS, pathOf, repeatable } from './hub-paths.ts';
import { hubText, lanesText, roomText } from './hub-text.ts';
import type { ResourceContext } from './resource-context.ts';

const DECOMMISSION = 'fulfillment-ledger/decommission';

/** `ledgerctl hubs`: the life of management clusters, from the first look at one to its end. */
export const addHubCommands = (
  program: Command,
  connection: Connection,
  time: Pick<ResourceContext, 'now' | 'pause'>,
): void => {
  const hubs = program
    .command('hubs')
    .description('management clusters: register, check, close, drain, remove');
  addLooking(hubs, connection);
  addCheckCommand(hubs, connection);
  addAddCommand(hubs, connection, time);
  addHubCredentialsCommand(hubs, connection);
  addScheduling(hubs, connection);
  addRemoving(hubs, connection);
};

const addLooking = (hubs: Command, { client, io }: Connection): void => {
  hubs
    .command('list')
    .description('hubs, nodes that orders use and that are free by host class, and what is wrong with each')
    .option('--json', 'as JSON', false)
    .addHelpText('after', examples('hubs list'))
    .action(async ({ json: asJson }: { json: boolean }) => {
      const { items } = await (await client()).get<{ items: HubSummary[] }>(HUBS);
      if (asJson) return io.out(jsonText(items));
      if (items.length === 0) return io.err('no hub is registered: ledgerctl hubs add --help\n');
      const rows = items.map((hub) => [
        hub.id,
        hub.adapter,
        hub.mode,
        hub.zone,
        hub.scheduling,
        hub.health,
        roomText(hub),
        lanesText(hub.lanes),
        hub.version,
        hub.lacking?.map(({ kind }) => kind).join(' '),
        hub.message,
      ]);
      const header = [
        'id',
        'adapter',
        'mode',
        'zone',
        'orders',
        'health',
        'used/free',
        'lanes',
        'version',
        'cannot carry',
        'message',
      ];
      return io.out(`${table(header, rows)}\n`);
    });
  hubs
    .command('show')
    .argument('<id>', 'id of the hub')
    .description('one hub: problems and since when, capacity, hosts, orders by state, its lane')
    .option('--json', 'as JSON', false)
    .addHelpText('after', examples('hubs show hub-north-1'))
    .action(async (id: string, { json: asJson }: { json: boolean }) => {
      const hub = await (await client()).get<HubDetails>(pathOf(HUBS, id));
      io.out(asJson ? jsonText(hub) : hubText(hub));
    });
  hubs
    .command('orders')
    .argument('<id>', 'id of the hub')
    .description('orders that are on a hub or have a place there')
    .option('--json', 'as JSON', false)
    .addHelpText('after', examples('hubs orders hub-north-1'))
    .action(async (id: string, { json: asJson }: { json: boolean }) => {
      const items = await ordersOf(await client(), id);
      if (asJson) return io.out(jsonText(items));
      if (items.length === 0) return io.err(`no order has a place on hub ${id}\n`);
      const rows = items.map((order) => [order.kind, order.id, order.name, order.tenant, order.state]);
      return io.out(`${table(['kind', 'id', 'name', 'tenant', 'state'], rows)}\n`);
    });
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
          const { orders: states } = await api.get<HubDetails>(pathOf(HUBS, id));
          io.out(`hub ${id}: draining; ${leftText(id, states)}\n`);
        } else io.out(`hub ${id}: ${scheduling}\n`);
      });
};

const leftText = (id: string, states: HubDetails['orders']): string => {
  const counted = Object.entries(states).map(([state, count]) => `${count} ${state}`);
  return counted.length === 0
    ? 'no order is on it any more'
    : `still on it: ${counted.join(', ')} (ledgerctl hubs orders ${id})`;
};

const addRemoving = (hubs: Command, { client, io }: Connection): void => {
  hubs
    .command('remove')
    .argument('<id>', 'id of the hub')
    .description('deregister a hub; refused while orders or Tenants are on it')
    .option(
      '--force',
      'give it up: it stays visible until its last order has left and nothing of its tenants is there',
      false,
    )
    .addHelpText('after', examples('hubs remove hub-north-1', 'hubs remove hub-north-1 --force'))
    .action(async (id: string, { force }: { force: boolean }) => {
      const api = await client();
      if (force) await annotateHub(api, id, [DECOMMISSION, 'force']);
      await api.send('DELETE', pathOf(DOCUMENTS, id), undefined, repeatable());
      const left = force ? await ordersOf(api, id).catch(() => undefined) : undefined;
      if (left === undefined) io.out(`hub ${id}: removed\n`);
      else if (left.length === 0)
        io.out(`hub ${id}: goes once nothing of its tenants is left on it (ledgerctl hubs show ${id})\n`);
      else
        io.out(
          `hub ${id}: goes when the last of ${left.length} orders has left it (ledgerctl hubs orders ${id})\n`,
        );
    });
};

const ordersOf = async (api: ApiClient, id: string): Promise<readonly HubOrder[]> => {
  const items: HubOrder[] = [];
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const page: HubOrders = await api.get(`${pathOf(HUBS, id, 'orders')}?limit=1000&offset=${offset}`);
    items.push(...page.items);
    offset = page.next_offset;
  }
  return items;
};
