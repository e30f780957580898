import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { isObject, objectAt, stringAt, textsAt } from '../../../src/domain/json-tools.ts';
import { JSON_PATCH, MERGE, type KubeAnswer, type RequestOptions } from '../kube-apiserver/client.ts';

/** How the played controllers reach the API server: a client's `call`, or a shortcut into the stand-in. */
export type KubeCall = (method: string, path: string, options?: RequestOptions) => Promise<KubeAnswer>;

export type KubeApi = ReturnType<typeof kubeApi>;

/** A refusal that the caller did not expect; `code` and `reason` are the server's. */
export class KubeRefusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = 'KubeRefusal';
    this.code = code;
  }
}

const PATHS = {
  namespaces: '/api/v1/namespaces',
  serviceaccounts: '/api/v1',
  secrets: '/api/v1',
  rolebindings: '/apis/rbac.authorization.k8s.io/v1',
  clusterorders: '/apis/osac.openshift.io/v1alpha1',
  tenants: '/apis/osac.openshift.io/v1alpha1',
  hostedclusters: '/apis/hypershift.openshift.io/v1beta1',
  nodepools: '/apis/hypershift.openshift.io/v1beta1',
  agents: '/apis/agent-install.openshift.io/v1beta1',
} as const;

export type Plural = keyof typeof PATHS;

const collection = (plural: Plural, namespace: string): string => {
  if (plural === 'namespaces') return PATHS.namespaces;
  return namespace === ''
    ? `${PATHS[plural]}/${plural}`
    : `${PATHS[plural]}/namespaces/${namespace}/${plural}`;
};

export const pathOf = (plural: Plural, namespace: string, name: string): string =>
  `${collection(plural, namespace)}/${encodeURIComponent(name)}`;

/** Typed by nothing but names: objects as the server sends them, refusals thrown. */
export const kubeApi = (call: KubeCall) => {
  let writes = 0;
  const done = (answer: KubeAnswer): JsonObject => {
    if (answer.code >= 200 && answer.code < 300) return answer.body;
    throw new KubeRefusal(answer.code, stringAt(answer.body, 'message') || answer.text);
  };
  const write = async (method: string, path: string, options: RequestOptions): Promise<JsonObject> => {
    writes += 1;
    return done(await call(method, path, options));
  };
  return {
    /** Writes sent so far: unchanged after a pass, there was nothing left to do. */
    writes: (): number => writes,
    get: async (plural: Plural, namespace: string, name: string): Promise<JsonObject | undefined> => {
      const answer = await call('GET', pathOf(plural, namespace, name));
      return answer.code === 404 ? undefined : done(answer);
    },
    list: async (plural: Plural, namespace: string, labelSelector = ''): Promise<JsonObject[]> => {
      const query = labelSelector === '' ? {} : { labelSelector };
      const { items } = done(await call('GET', collection(plural, namespace), { query }));
      return Array.isArray(items) ? (items as JsonValue[]).filter(isObject) : [];
    },
    create: (plural: Plural, namespace: string, body: JsonObject): Promise<JsonObject> =>
      write('POST', collection(plural, namespace), { body }),
    /** PUT of the whole object. */
    update: (plural: Plural, object: JsonObject): Promise<JsonObject> =>
      write('PUT', pathOf(plural, namespaceOf(object), nameOf(object)), { body: object }),
    merge: (plural: Plural, namespace: string, name: string, patch: JsonObject): Promise<JsonObject> =>
      write('PATCH', pathOf(plural, namespace, name), { body: patch, type: MERGE }),
    status: (plural: Plural, object: JsonObject, status: JsonObject): Promise<JsonObject> =>
      write('PATCH', `${pathOf(plural, namespaceOf(object), nameOf(object))}/status`, {
        body: { status },
        type: MERGE,
      }),
    /** Replaces the list of finalizers, if it still is what the caller saw. */
    finalizers: (plural: Plural, object: JsonObject, finalizers: readonly string[]): Promise<JsonObject> =>
      write('PATCH', pathOf(plural, namespaceOf(object), nameOf(object)), {
        body: [
          {
            op: 'test',
            path: '/metadata/resourceVersion',
            value: stringAt(metaOf(object), 'resourceVersion'),
          },
          { op: 'add', path: '/metadata/finalizers', value: [...finalizers] },
        ],
        type: JSON_PATCH,
      }),
    /** True when it was there. */
    remove: async (plural: Plural, namespace: string, name: string): Promise<boolean> => {
      writes += 1;
      const answer = await call('DELETE', pathOf(plural, namespace, name));
      if (answer.code === 404) return false;
      done(answer);
      return true;
    },
  };
};

export const metaOf = (object: JsonObject): JsonObject => objectAt(object, 'metadata');
export const nameOf = (object: JsonObject): string => stringAt(metaOf(object), 'name');
export const namespaceOf = (object: JsonObject): string => stringAt(metaOf(object), 'namespace');
export const uidOf = (object: JsonObject): string => stringAt(metaOf(object), 'uid');
export const versionOf = (object: JsonObject): string => stringAt(metaOf(object), 'resourceVersion');
export const labelsOf = (object: JsonObject): { [key: string]: string } => textsAt(metaOf(object), 'labels');
export const annotationsOf = (object: JsonObject): { [key: string]: string } =>
  textsAt(metaOf(object), 'annotations');
export const isDeleting = (object: JsonObject): boolean => metaOf(object)['deletionTimestamp'] !== undefined;
export const finalizersOf = (object: JsonObject): string[] => {
  const { finalizers } = metaOf(object);
  return Array.isArray(finalizers) ? finalizers.filter((one) => typeof one === 'string') : [];
};

export const condition = (object: JsonObject, type: string): string => {
  const { conditions } = objectAt(object, 'status');
  const found = (Array.isArray(conditions) ? (conditions as JsonValue[]).filter(isObject) : []).find(
    (one) => one['type'] === type,
  );
  return found === undefined ? '' : stringAt(found, 'status');
};

export const PREFIX = 'osac.openshift.io/';
export const OWN_FINALIZER = `${PREFIX}finalizer`;
export const INFRASTRUCTURE = `${PREFIX}infrastructure`;
export const ORDER_LABEL = `${PREFIX}clusterorder`;
