/**
 * Orders on Kubernetes hubs, with the stand-in API server or (`--real`) etcd and kube-apiserver in processes of their
 * own. Options: see README.md.
 */
import { parseArgs } from 'node:util';
import { dispatchPart, flightPart, hungPart, memoryPart, statusPart } from './support/hub/parts.ts';
import { printMachine } from './support/report.ts';

const { values } = parseArgs({
  options: {
    part: { type: 'string', default: 'dispatch,status,flight,memory,hung' },
    orders: { type: 'string', default: '1000' },
    hubs: { type: 'string', default: '10' },
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '10' },
    repeat: { type: 'string', default: '1' },
    sizes: { type: 'string', default: '2000,10000' },
    'ordered-sizes': { type: 'string', default: '3000,6000' },
    'orders-per-second': { type: 'string', default: '20' },
    'node-options': { type: 'string', default: '' },
    real: { type: 'boolean', default: false },
  },
});
const numbers = (list: string): number[] => list.split(',').filter(Boolean).map(Number);
const hubs = Number(values.hubs);
const options = {
  real: values.real,
  orders: Number(values.orders),
  rate: Number(values.rate),
  seconds: Number(values.seconds),
  nodeOptions: values['node-options'].split(' ').filter(Boolean),
};

const parts: { readonly [name: string]: () => Promise<void> } = {
  dispatch: async () => {
    for (const count of new Set([1, hubs])) await dispatchPart(options, count);
  },
  status: () => statusPart(options),
  flight: () => flightPart(options),
  memory: async () => {
    const [seen, ordered] = [numbers(values.sizes), numbers(values['ordered-sizes'])];
    if (seen.length > 0) await memoryPart(options, seen, 'seen');
    if (ordered.length > 0) await memoryPart(options, ordered, 'ordered');
  },
  hung: () => hungPart(options, hubs, Number(values['orders-per-second'])),
};

const chosen = values.part.split(',');
const unknown = chosen.filter((name) => !Object.hasOwn(parts, name));
if (unknown.length > 0) {
  process.stderr.write(`no part ${unknown.join(', ')}; there are ${Object.keys(parts).join(', ')}\n`);
  process.exit(2);
}
const { orders, rate, seconds } = options;
printMachine({ hub: values.real ? 'kube-apiserver' : 'stand-in', orders, hubs, rate, seconds });
for (const name of chosen) {
  console.log(`\n${name}`);
  for (let run = 0; run < Number(values.repeat); run += 1) await parts[name]?.();
}
