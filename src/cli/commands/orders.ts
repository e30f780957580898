import type { Command } from 'commander';
import { stringAt } from '../../domain/json-tools.ts';
import { ApiError, type ApiClient } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { table } from '../output.ts';
import { ageOf } from '../resources/cells.ts';
import { onlyOne } from '../resources/resource-api.ts';
import type { Lane } from './lanes.ts';
import { orderText, type OrderDetails } from './order-text.ts';
import { positive, type ResourceContext } from './resource-context.ts';

export type Order = {
  readonly id: string;
  readonly name: string;
  readonly tenant: string;
  readonly state: string;
  readonly ordered_at: string;
  readonly hub?: string;
  /** What it waits for or why it failed, if it does. */
  readonly message?: string;
};

/** `ledgerctl orders`: what is under way, and the two things an operator can do about it. */
export const addOrderCommands = (
  program: Command,
  { client, io }: Connection,
  resources: () => Promise<ResourceContext>,
): void => {
  const orders = program.command('orders').description('cluster orders of all tenants');
  orders
    .command('list')
    .description('orders, newest first')
    .option('--state <state>', 'only orders in this state, for example failed or degraded')
    .option('--tenant <name>', 'only orders of this tenant')
    .option('--limit <n>', 'at most so many; default: all', positive)
    .option('--json', 'as JSON', false)
    .addHelpText(
      'after',
      examples('orders list', 'orders list --state failed', 'orders list --tenant acme --limit 20'),
    )
    .action(async (options: ListOptions) => {
      const items = await listed(await client(), options);
      if (items.length === 0 && !options.json) return io.err('there are no orders that match\n');
      const rows = items.map((order) => [
        order.id,
        order.name,
        order.tenant,
        order.state,
        ageOf(order.ordered_at, Date.now()),
        order.hub,
        order.message,
      ]);
      const header = ['id', 'name', 'tenant', 'state', 'age', 'hub', 'message'];
      io.out(`${options.json ? JSON.stringify(items, null, 2) : table(header, rows)}\n`);
    });
  orders
    .command('show')
    .argument('<order>', 'id of the order, or name or id of its cluster')
    .description('one order: why it is where it is, conditions, what is outstanding, timeline')
    .option('--json', 'as JSON', false)
    .addHelpText('after', examples('orders show web', 'orders show web --json'))
    .action(async (wanted: string, { json }: { json: boolean }) => {
      const api = await client();
      const order = await byIdOrName(resources, wanted, (id) => api.get<OrderDetails>(pathOf(id)));
      if (json) return io.out(`${JSON.stringify(order, null, 2)}\n`);
      const lanes = order.run === undefined || order.run.effects.length === 0 ? [] : await lanesOf(api);
      io.out(`${orderText(order, lanes)}\n`);
    });
  for (const [verb, description, done] of [
    ['retry', 'try a failed order again', 'retry requested'],
    [
      'cancel',
      'cancel an order that no hub has taken yet; its cluster is removed, as if it had been deleted',
      'cancelled, its cluster is removed',
    ],
  ] as const) {
    orders
      .command(verb)
      .argument('<order>', 'id of the order, or name or id of its cluster')
      .description(description)
      .addHelpText('after', examples(`orders ${verb} web`))
      .action(async (wanted: string) => {
        const api = await client();
        await api.send('POST', `${pathOf(await idOf(resources, wanted))}/${verb}`);
        io.out(`order ${wanted}: ${done}\n`);
      });
  }
};

type ListOptions = {
  readonly state?: string;
  readonly tenant?: string;
  readonly limit?: number;
  readonly json: boolean;
};

/** Orders that one call asks for. */
const PAGE = 500;

/** Page after page, to the end or the limit. */
const listed = async (api: ApiClient, { state, tenant, limit }: ListOptions): Promise<readonly Order[]> => {
  const orders: Order[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const left = limit === undefined ? PAGE : Math.min(PAGE, limit - orders.length);
    if (left === 0) break;
    const query = new URLSearchParams({
      limit: String(left),
      ...(state === undefined ? {} : { state }),
      ...(tenant === undefined ? {} : { tenant }),
      ...(cursor === '' ? {} : { cursor }),
    });
    const page: { items?: Order[]; next_cursor?: string } = await api.get(
      `/api/ledger/v1/orders?${query.toString()}`,
    );
    orders.push(...(page.items ?? []));
    cursor = page.next_cursor;
  }
  return orders;
};

/** None from an instance that does not run the processes: the order is shown all the same. */
const lanesOf = async (api: ApiClient): Promise<readonly Lane[]> => {
  try {
    return (await api.get<{ items?: Lane[] }>('/api/ledger/v1/lanes')).items ?? [];
  } catch (error) {
    if (error instanceof ApiError) return [];
    throw error;
  }
};

const pathOf = (id: string): string => `/api/ledger/v1/orders/${encodeURIComponent(id)}`;

/** Asked for before anything is done: a call that is refused because a name is no id stays in the audit history. */
const idOf = async (resources: () => Promise<ResourceContext>, wanted: string): Promise<string> => {
  const { names, open } = await resources();
  const kind = names.find('cluster');
  const { objects } = await (await open({ private: true })).find(kind, [wanted]);
  return objects.length === 0 ? wanted : stringAt(onlyOne(kind, wanted, objects), 'id');
};

/** An order has the id of its cluster and outlives it; a name finds it while the cluster is there. */
const byIdOrName = async <T>(
  resources: () => Promise<ResourceContext>,
  wanted: string,
  call: (id: string) => Promise<T>,
): Promise<T> => {
  try {
    return await call(wanted);
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
    const { names, open } = await resources();
    const kind = names.find('cluster');
    const { objects } = await (await open({ private: true })).find(kind, [wanted]);
    if (objects.length === 0) throw error;
    return call(stringAt(onlyOne(kind, wanted, objects), 'id'));
  }
};
