import type { Command } from 'commander';
import type { Connection } from '../connection.ts';
import { table } from '../output.ts';
import { orderText, type OrderDetails } from './order-text.ts';

export type Order = {
  readonly id: string;
  readonly name: string;
  readonly tenant: string;
  readonly state: string;
  readonly hub?: string;
  /** What it waits for or why it failed, if it does. */
  readonly message?: string;
};

/** `ledgerctl orders`: what is under way, and the two things an operator can do about it. */
export const addOrderCommands = (program: Command, { client, io }: Connection): void => {
  const orders = program.command('orders').description('cluster orders of all tenants');
  orders
    .command('list')
    .description('orders, oldest first')
    .option('--state <state>', 'only orders in this state, for example failed')
    .option('--limit <n>', 'at most so many', '100')
    .option('--json', 'as JSON', false)
    .action(async ({ state, limit, json }: { state?: string; limit: string; json: boolean }) => {
      const query = new URLSearchParams({ limit, ...(state === undefined ? {} : { state }) });
      const { items = [] } = await (await client()).get<{ items?: Order[] }>(
        `/api/ledger/v1/orders?${query.toString()}`,
      );
      const rows = items.map((order) => [
        order.id,
        order.name,
        order.tenant,
        order.state,
        order.hub,
        order.message,
      ]);
      io.out(
        `${json ? JSON.stringify(items, null, 2) : table(['id', 'name', 'tenant', 'state', 'hub', 'message'], rows)}\n`,
      );
    });
  orders
    .command('show <id>')
    .description('one order: why it is where it is, conditions, what is outstanding, timeline')
    .option('--json', 'as JSON', false)
    .action(async (id: string, { json }: { json: boolean }) => {
      const order = await (await client()).get<OrderDetails>(
        `/api/ledger/v1/orders/${encodeURIComponent(id)}`,
      );
      io.out(`${json ? JSON.stringify(order, null, 2) : orderText(order)}\n`);
    });
  for (const [verb, description, done] of [
    ['retry', 'try a failed order again', 'retry requested'],
    ['cancel', 'cancel an order that was not dispatched yet', 'cancelled'],
  ] as const) {
    orders
      .command(`${verb} <id>`)
      .description(description)
      .action(async (id: string) => {
        await (await client()).send('POST', `/api/ledger/v1/orders/${encodeURIComponent(id)}/${verb}`);
        io.out(`order ${id}: ${done}\n`);
      });
  }
};
