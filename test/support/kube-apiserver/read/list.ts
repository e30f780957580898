import { randomUUID } from 'node:crypto';
import { badRequest, expired, StatusError } from '../errors.ts';
import type { Store } from '../store.ts';
import { apiVersionOf, type JsonObject, type Kind, type KubeObject } from '../types.ts';
import { fieldSelector, labelSelector } from './selectors.ts';

/** A list that was cut into pages: the rest of what the first page saw. */
type Rest = { readonly version: number; readonly items: readonly KubeObject[] };

const KEPT_RESTS = 64;

/** Lists, with pages that show one moment however long the caller takes, until the token expires. */
export const createLists = (store: Store) => {
  const rests = new Map<string, Rest>();

  const keep = (rest: Rest): string => {
    const token = Buffer.from(
      JSON.stringify({ v: 'meta.k8s.io/v1', rv: rest.version, id: randomUUID() }),
    ).toString('base64url');
    rests.set(token, rest);
    const [oldest] = rests.keys();
    if (rests.size > KEPT_RESTS && oldest !== undefined) rests.delete(oldest);
    return token;
  };

  const firstPage = (kind: Kind, namespace: string | undefined, query: URLSearchParams): Rest => {
    checkVersion(store, query);
    const labels = labelSelector(query.get('labelSelector') ?? undefined);
    const fields = fieldSelector(kind, query.get('fieldSelector') ?? undefined);
    const items = store.list(kind, namespace).filter((object) => labels(object) && fields(object));
    return { version: store.version(), items };
  };

  return {
    /** The list document that a GET on a collection answers. */
    list: (kind: Kind, namespace: string | undefined, query: URLSearchParams): JsonObject => {
      const token = query.get('continue') ?? '';
      const limit = Number(query.get('limit') ?? '0') || Number.POSITIVE_INFINITY;
      if (token !== '' && (query.get('resourceVersion') ?? '') !== '') {
        throw badRequest('specifying resource version is not allowed when using continue');
      }
      const rest = token === '' ? firstPage(kind, namespace, query) : rests.get(token);
      if (rest === undefined) throw TOKEN_TOO_OLD();
      const items = rest.items.slice(0, limit);
      const left = rest.items.slice(items.length);
      const more =
        left.length === 0
          ? {}
          : { continue: keep({ version: rest.version, items: left }), remainingItemCount: left.length };
      return {
        apiVersion: apiVersionOf(kind),
        kind: kind.listKind,
        metadata: { resourceVersion: String(rest.version), ...more },
        items: items.map((object) => listed(kind, object)),
      };
    },
    /** Every continue token given out so far answers 410 from now on. */
    expire: (): void => rests.clear(),
  };
};

export type Lists = ReturnType<typeof createLists>;

/** Only custom resources carry apiVersion and kind inside a list. */
const listed = (kind: Kind, object: KubeObject): JsonObject => {
  if (kind.custom) return object as unknown as JsonObject;
  const { apiVersion: _version, kind: _kind, ...rest } = object;
  return rest as unknown as JsonObject;
};

const TOKEN_TOO_OLD = (): StatusError =>
  expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list ' +
      'without the continue parameter.',
  );

/** A version of the future is not waited for. */
export const checkVersion = (store: Store, query: URLSearchParams): void => {
  const wanted = query.get('resourceVersion') ?? '';
  if (wanted === '' || wanted === '0') return;
  if (!/^\d+$/.test(wanted))
    throw badRequest(`Invalid value: "${wanted}": strconv.ParseUint: parsing "${wanted}": invalid syntax`);
  if (Number(wanted) <= store.version()) return;
  const message = `Timeout: Too large resource version: ${wanted}, current: ${store.version()}`;
  throw new StatusError(504, 'Timeout', message, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version', field: '' }],
    retryAfterSeconds: 1,
  });
};
