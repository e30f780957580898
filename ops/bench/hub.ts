/**
 * Orders on Kubernetes hubs, with the stand-in API server or (`--real`) etcd and kube-apiserver in processes of their
 * own. Options: see README.md.
 */
import { parseArgs } from 'node:util';
import {
  dispatchPart,
  flightPart,
  hungPart,
  looksPart,
  memoryPart,
  statusPart,
} from './support/hub/parts.ts';
import { printMachine } from './support/report.ts';

const { values } = parseArgs({
  options: {
    part: { type: 'string', default: 'dispatch,status,flight,memory,hung' },
    orders: { type: 'string' },
    hubs: { type: 'string' },
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '10' },
    repeat: { type: 'string', default: '1' },
    sizes: { type: 'string' },
    'ordered-sizes': { type: 'string', default: '3000,6000' },
    'orders-per-second': { type: 'string', default: '20' },
    pacing: { type: 'string' },
    'node-options': { type: 'string', default: '' },
    real: { type: 'boolean', default: false },
  },
});
// A real server takes the service's share of two cores: with these all parts together take less than five minutes.
const defaults = values.real
  ? { orders: '400', hubs: '4', sizes: '2000,6000' }
  : { orders: '1000', hubs: '10', sizes: '2000,10000' };
const {
  orders: ordersText = defaults.orders,
  hubs: hubsText = defaults.hubs,
  sizes = defaults.sizes,
} = values;
/** A bench of `NaN` orders would run to its end and print nonsense. */
const number = (name: string, text: string): number => {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  process.stderr.write(`--${name} takes numbers above 0, not "${text}"\n`);
  return process.exit(2);
};
const numbers = (name: string, list: string): number[] => list.split(',').map((text) => number(name, text));
const hubs = number('hubs', hubsText);
const pace = values.pacing === undefined ? Number.NaN : number('pacing', values.pacing);
const pacing = values.pacing === undefined ? null : { calls_per_second: pace, burst: 2 * pace };
const options = {
  real: values.real,
  orders: number('orders', ordersText),
  rate: number('rate', values.rate),
  seconds: number('seconds', values.seconds),
  nodeOptions: values['node-options'].split(' ').filter(Boolean),
};

const parts: { readonly [name: string]: () => Promise<void> } = {
  dispatch: async () => {
    for (const count of new Set([1, hubs])) await dispatchPart(options, count);
  },
  status: () => statusPart(options),
  flight: () => flightPart(options),
  memory: () => memoryPart(options, numbers('sizes', sizes), 'seen'),
  ordered: () => memoryPart(options, numbers('ordered-sizes', values['ordered-sizes']), 'ordered'),
  looks: () => looksPart({ ...options, pacing }),
  hung: () => hungPart(options, hubs, number('orders-per-second', values['orders-per-second'])),
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
  const started = performance.now();
  for (let run = 0; run < number('repeat', values.repeat); run += 1) await parts[name]?.();
  console.log(`(${((performance.now() - started) / 1000).toFixed(0)} s)`);
}
