import { defined, own, sameJson } from '../json-tools.ts';
import type { BuiltSpec, Order } from './state.ts';

export const builtSpec = (order: Order): BuiltSpec => ({
  nodeSets: order.nodeSets,
  version: order.version,
  ...defined({ sshPublicKey: order.sshPublicKey, pullSecret: order.pullSecret, network: order.network }),
});

/** Which change leads from what was built to what is ordered, for tenants; empty: none. */
export const changeWords = (built: BuiltSpec, wanted: BuiltSpec): string => {
  const names = [...new Set([...Object.keys(built.nodeSets), ...Object.keys(wanted.nodeSets)])].sort();
  const sets = names.flatMap((name) => setWords(name, own(built.nodeSets, name), own(wanted.nodeSets, name)));
  const version =
    built.version.id === wanted.version.id ? [] : [`change of the version to '${wanted.version.name}'`];
  const fields = Object.entries(FIELDS).flatMap(([field, words]) => {
    const key = field as keyof typeof FIELDS;
    return sameJson(built[key], wanted[key]) ? [] : [`change of the ${words}`];
  });
  return [...sets, ...version, ...fields].join(', ');
};

const FIELDS = { network: 'network', pullSecret: 'pull secret', sshPublicKey: 'SSH key' } as const;

type Set = BuiltSpec['nodeSets'][string];

const setWords = (name: string, built: Set | undefined, wanted: Set | undefined): readonly string[] => {
  if (built === undefined)
    return wanted === undefined ? [] : [`new node set '${name}' of ${wanted.size} ${wanted.hostType.name}`];
  if (wanted === undefined) return [`removal of node set '${name}'`];
  return built.size === wanted.size
    ? []
    : [`resize of node set '${name}' from ${built.size} to ${wanted.size}`];
};
