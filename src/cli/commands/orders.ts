import { InvalidArgumentError, type Command } from 'commander';
import { stringAt } from '../../domain/json-tools.ts';
import type { Order, OrderDetails, Orders } from '../../http/ledger/order-operations.ts';
import type { Lane } from '../../http/ledger/upkeep-operations.ts';
import { ApiError, queryText, type ApiClient } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { table } from '../output.ts';
import { ageOf } from '../resources/cells.ts';
import { onlyOne } from '../resources/resource-api.ts';
import { orderText } from './order-text.ts';
import { positive, type ResourceContext } from './resource-context.ts';

/** `ledgerctl orders`: what is under way, and what an operator can do about it. */
export const addOrderCommands = (
  program: Command,
  { client, io }: Connection,
  resources: () => Promise<ResourceContext>,
): void => {
  const orders = program.command('orders').description('orders of all kinds and tenants');
  orders
    .command('list')
    .description('orders, newest first')
    .option('--state <state>', 'only orders in this state, for example failed or degraded')
    .option('--kind <kind>', 'only orders of this kind, see `ledgerctl kinds`')
    .option('--tenant <name>', 'only orders of this tenant')
    .option('--limit <n>', 'at most so many; default: all', positive)
    .option('--json', 'as JSON', false)
    .addHelpText(
      'after',
      examples('orders list', 'orders list --state failed', 'orders list --tenant acme --limit 20'),
    )
    .action(async (options: ListOptions) => {
      const kind =
        options.kind === undefined ? {} : { kind: (await resources()).names.find(options.kind).kind.kind };
      const items = await listed(await client(), { ...options, ...kind });
      if (items.length === 0 && !options.json) return io.err('no orders match\n');
      const rows = items.map((order) => [
        order.kind,
        order.id,
        order.name,
        order.tenant,
        order.state,
        ageOf(order.ordered_at, Date.now()),
        order.hub,
        order.message,
      ]);
      const header = ['kind', 'id', 'name', 'tenant', 'state', 'age', 'hub', 'message'];
      io.out(`${options.json ? JSON.stringify(items, null, 2) : table(header, rows)}\n`);
    });
  orders
    .command('show')
    .argument('<order>', ORDER)
    .description('one order: why it is where it is, conditions, what is outstanding, timeline')
    .option('--json', 'as JSON', false)
    .addHelpText('after', examples('orders show web', 'orders show web --json'))
    .action(async (wanted: string, { json }: { json: boolean }) => {
      const api = await client();
      const order = await byIdOrName(resources, wanted, (meant) => api.get<OrderDetails>(pathOf(meant)));
      if (json) return io.out(`${JSON.stringify(order, null, 2)}\n`);
      const lanes = order.run === undefined || order.run.effects.length === 0 ? [] : await lanesOf(api);
      io.out(`${orderText(order, lanes)}\n`);
    });
  for (const [verb, about, done, example, ...options] of ACTS) {
    const command = orders.command(verb).argument('<order>', ORDER).description(about);
    for (const [flags, meaning] of options) command.requiredOption(flags, meaning);
    command
      .addHelpText('after', examples(`orders ${verb} web${example}`))
      .action(async (wanted: string, body: object) => {
        const api = await client();
        const path = pathOf(await orderNamed(resources, wanted), `/${verb}`);
        await api.send('POST', path, options.length === 0 ? undefined : body);
        io.out(`order ${wanted}: ${done}\n`);
      });
  }
};

type Option = readonly [flags: string, meaning: string];
const STEP: Option = ['--step <name>', 'which step'];
const REASON: Option = ['--reason <text>', 'why; stays in the history of the order'];
const OF_STEP = ' --step dns --reason "done by hand"';

type Act = readonly [verb: string, about: string, done: string, example: string, ...needed: Option[]];
const ACTS: readonly Act[] = [
  ['retry', 'try a failed order again', 'retry requested', ''],
  [
    'cancel',
    'cancel an order that no hub has taken yet; its object is removed, as if it had been deleted',
    'cancelled, its object is removed',
    '',
  ],
  ['skip', 'skip a step: what comes after it goes on', 'step skipped', OF_STEP, STEP, REASON],
  ['resume', 'take a skipped step up again', 'step resumed', OF_STEP, STEP, REASON],
  [
    'abort',
    'abort an order: what was begun for it is undone in reverse order',
    'aborted, what was begun for it is undone',
    ' --reason "wrong site"',
    REASON,
  ],
];

const ORDER = 'id or name of what was ordered, or kind/name';

type ListOptions = {
  readonly state?: string;
  readonly kind?: string;
  readonly tenant?: string;
  readonly limit?: number;
  readonly json: boolean;
};

const PAGE = 500;

const listed = async (
  api: ApiClient,
  { state, kind, tenant, limit }: ListOptions,
): Promise<readonly Order[]> => {
  const orders: Order[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const left = limit === undefined ? PAGE : Math.min(PAGE, limit - orders.length);
    if (left === 0) break;
    const query = queryText({ limit: left, state, kind, tenant, cursor: cursor || undefined });
    const page: Orders = await api.get(`/api/ledger/v1/orders${query}`);
    orders.push(...page.items);
    cursor = page.next_cursor;
  }
  return orders;
};

/** None from an instance that does not run the processes: the order is shown all the same. */
const lanesOf = async (api: ApiClient): Promise<readonly Lane[]> => {
  try {
    return (await api.get<{ items: Lane[] }>('/api/ledger/v1/lanes')).items;
  } catch (error) {
    if (error instanceof ApiError) return [];
    throw error;
  }
};

/** `kind`: where it is known; an id of objects of several kinds needs it. */
type Meant = { readonly id: string; readonly kind?: string };

const pathOf = ({ id, kind }: Meant, verb = ''): string =>
  `/api/ledger/v1/orders/${encodeURIComponent(id)}${verb}${kind === undefined ? '' : `?kind=${kind}`}`;

/**
 * Asked for before anything is done: a call that is refused because a name is no id stays in the audit history. What is not
 * found is taken for an id: an order outlives its object.
 */
const orderNamed = async (resources: () => Promise<ResourceContext>, wanted: string): Promise<Meant> => {
  const { names, open } = await resources();
  const at = wanted.indexOf('/');
  const said = at > 0 ? names.find(wanted.slice(0, at)) : undefined;
  const name = wanted.slice(at + 1);
  const api = await open({ private: true });
  const found: Meant[] = [];
  for (const kind of said === undefined ? names.all.filter((each) => each.kind.acts === true) : [said]) {
    const { objects } = await api.find(kind, [name]);
    if (objects.length > 0)
      found.push({ id: stringAt(onlyOne(kind, name, objects), 'id'), kind: kind.kind.kind });
  }
  const [only, ...others] = found;
  if (only === undefined) return { id: name, ...(said === undefined ? {} : { kind: said.kind.kind }) };
  if (others.length === 0) return only;
  throw new InvalidArgumentError(
    `several orders are called '${name}': ${found.map(({ kind = '' }) => `${kind}/${name}`).join(', ')}`,
  );
};

/** An order has the id of its object and outlives it; a name finds it while the object is there. */
const byIdOrName = async <T>(
  resources: () => Promise<ResourceContext>,
  wanted: string,
  call: (meant: Meant) => Promise<T>,
): Promise<T> => {
  if (wanted.includes('/')) return call(await orderNamed(resources, wanted));
  try {
    return await call({ id: wanted });
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
    const meant = await orderNamed(resources, wanted);
    if (meant.kind === undefined) throw error;
    return call(meant);
  }
};
