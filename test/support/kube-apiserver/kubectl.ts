import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { collectionOf, kubeClient } from './client.ts';
import { objectsOf } from './start.ts';

/**
 * As much of kubectl as our documents ask people to type, so that they can be typed where there is none:
 * `create namespace NAME`, `apply -f FILE|FOLDER|-`, `get secret NAME -o jsonpath=…`, `config view -o jsonpath=…`.
 * Who and where: KUBE_URL, KUBE_TOKEN and KUBE_CA (a file).
 */
const { KUBE_URL: url = '', KUBE_TOKEN: token = '', KUBE_CA: authority = '' } = process.env;
const client = kubeClient({ url, token, ca: readFileSync(authority, 'utf8') });
const argv = process.argv.slice(2);
const option = (name: string): string | undefined => {
  const at = argv.indexOf(name);
  return at === -1 ? undefined : argv.splice(at, 2)[1];
};
const namespace = option('-n') ?? 'default';
const file = option('-f');
const output = option('-o') ?? '';

const apply = async (object: JsonObject): Promise<void> => {
  const path = collectionOf(object);
  const name = stringAt(objectAt(object, 'metadata'), 'name');
  let answer = await client.post(path, object);
  if (answer.code === 409) answer = await client.merge(`${path}/${name}`, object);
  if (answer.code >= 400) throw new Error(`${path}/${name}: ${answer.code} ${answer.text}`);
  console.log(`${stringAt(object, 'kind')}/${name} applied`);
};

const textOf = (from: string): string => {
  if (from === '-') return readFileSync(0, 'utf8');
  if (!statSync(from).isDirectory()) return readFileSync(from, 'utf8');
  const files = readdirSync(from).filter((each) => each.endsWith('.yaml'));
  return files.map((each) => readFileSync(join(from, each), 'utf8')).join('\n---\n');
};

/** `{.data.ca\.crt}`, `{.clusters[0].cluster.server}`. */
const jsonPath = (object: JsonObject, path: string): string => {
  const names = path.replace(/^jsonpath=\{\.|\}$/g, '').split(/(?<!\\)\./);
  let value: JsonValue | undefined = object;
  for (const name of names) {
    const [, key = '', index] = /^(.*?)(?:\[(\d+)\])?$/.exec(name.replaceAll('\\', '')) ?? [];
    value =
      index === undefined ? (value as JsonObject)[key] : listAt(value as JsonObject, key)[Number(index)];
  }
  return typeof value === 'string' ? value : '';
};

const [verb = '', what = '', name = ''] = argv;
switch (`${verb} ${what}`.trim()) {
  case 'apply':
    for (const object of objectsOf(textOf(file ?? '-'))) await apply(object);
    break;
  case 'create namespace':
    await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    break;
  case 'get secret': {
    const { body } = await client.get(`/api/v1/namespaces/${namespace}/secrets/${name}`);
    process.stdout.write(jsonPath(body, output));
    break;
  }
  case 'config view':
    process.stdout.write(jsonPath({ clusters: [{ cluster: { server: url } }] }, output));
    break;
  default:
    throw new Error(`this kubectl does not know: ${process.argv.slice(2).join(' ')}`);
}
client.close();
