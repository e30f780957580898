import { objectAt, sameJson, stringAt, withoutValueAt } from '../../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import type { FilterNode } from '../../../projections/filter/ast.ts';
import { evaluate } from '../../../projections/filter/evaluate.ts';
import type { Change, ChangeKey, ChangeReader } from '../../../projections/resources/change-reader.ts';
import type { ChangeType } from '../../../projections/resources/changes.ts';
import {
  privatePaths,
  publicText,
  withoutPrivate,
  type PrivatePaths,
} from '../../../projections/resources/fold.ts';
import { sees, type Placed } from '../../../projections/visibility.ts';
import { binaryOf, WATCH_RESPONSES, type Surface } from '../messages.ts';
import type { Audience, WatchedKind } from './audience.ts';

/** How events are put on the wire: one JSON object per line, Server-Sent Events, or messages that a library frames. */
export type Framing = 'ndjson' | 'sse' | 'grpc';

/** A change as watchers get it. Each surface is rendered at most once, each filter evaluated at most once. */
export type RenderedChange = ChangeKey & {
  readonly kind: string;
  readonly tenant: string;
  /**
   * Not of an update that the audience does not see, as one of what the provider alone may read is to tenants.
   * `filter` undefined: all that the audience may see. A filter that cannot be evaluated does not match.
   */
  readonly concerns: (audience: Audience, filter: FilterNode | undefined) => boolean;
  readonly frame: (surface: Surface, framing: Framing) => Uint8Array;
};

export type Renderer = (change: Change) => RenderedChange;

const TYPES: Readonly<Record<ChangeType, string>> = {
  created: 'EVENT_TYPE_OBJECT_CREATED',
  updated: 'EVENT_TYPE_OBJECT_UPDATED',
  deleted: 'EVENT_TYPE_OBJECT_DELETED',
};

export type RendererOptions = {
  readonly kinds: readonly WatchedKind[];
  readonly formatId: (key: ChangeKey) => string;
  readonly documentBefore: ChangeReader['documentBefore'];
  /** Milliseconds since 1970: what `now` of filters reads as. */
  readonly nowMs: () => number;
};

type Watched = { readonly field: string; readonly paths: PrivatePaths };

export const createRenderer = ({ kinds, formatId, documentBefore, nowMs }: RendererOptions): Renderer => {
  const watched = new Map<string, Watched>();
  for (const { kind, event, privateOnly } of kinds)
    if (event !== undefined) watched.set(kind, { field: event.field, paths: privatePaths(privateOnly) });

  return (change) => {
    const { position, n, kind, tenant, type } = change;
    const id = formatId(change);
    const known = watched.get(kind);
    const bySurface = new Map<Surface, Rendering>();
    const seen = seenIn(change, () => documentBefore(change));
    const rendering = ({ field, paths }: Watched, surface: Surface): Rendering => {
      const done = bySurface.get(surface);
      if (done !== undefined) return done;
      const text =
        surface === 'private'
          ? change.document
          : publicText(JSON.parse(change.document) as JsonObject, paths);
      const made = renderOf({ id, type: TYPES[type], field, text, surface });
      bySurface.set(surface, made);
      return made;
    };
    let place: Placed | undefined;
    const placed = (): Placed => {
      const metadata = objectAt(JSON.parse(change.document) as JsonObject, 'metadata');
      return { tenant, project: stringAt(metadata, 'project'), name: stringAt(metadata, 'name') };
    };
    return {
      position,
      n,
      kind,
      tenant,
      concerns: (audience, filter) => {
        if (known === undefined || !audience.kinds.has(kind)) return false;
        if (audience.tenants?.has(tenant) === false) return false;
        const limit = audience.limits?.get(kind);
        if (limit !== undefined && !sees(limit, kind, (place ??= placed()))) return false;
        if (type === 'updated' && !seen(known.paths, audience.surface)) return false;
        return filter === undefined || rendering(known, audience.surface).matches(filter, nowMs);
      },
      frame: (surface, framing) => (known === undefined ? NOTHING : rendering(known, surface).frame(framing)),
    };
  };
};

/**
 * Whether a surface shows another document than before. The counting version alone is no change; what is no longer kept
 * may have been another one.
 */
const seenIn = (
  { document }: Change,
  readBefore: () => string | undefined,
): ((paths: PrivatePaths, surface: Surface) => boolean) => {
  const verdicts = new Map<Surface, boolean>();
  let documents: readonly [JsonObject, JsonObject] | 'unknown' | undefined;
  const read = (): readonly [JsonObject, JsonObject] | 'unknown' => {
    const before = readBefore();
    return before === undefined ? 'unknown' : [unversioned(before), unversioned(document)];
  };
  return (paths, surface) => {
    const known = verdicts.get(surface);
    if (known !== undefined) return known;
    documents ??= read();
    const shown = (of: JsonObject): JsonValue => (surface === 'private' ? of : withoutPrivate(of, paths));
    const verdict = documents === 'unknown' || !sameJson(shown(documents[0]), shown(documents[1]));
    verdicts.set(surface, verdict);
    return verdict;
  };
};

const unversioned = (document: string): JsonObject =>
  withoutValueAt(JSON.parse(document) as JsonObject, 'metadata.version');

const NOTHING = new Uint8Array();

type Rendering = {
  readonly frame: (framing: Framing) => Uint8Array;
  readonly matches: (filter: FilterNode, nowMs: () => number) => boolean;
};

const renderOf = (event: {
  readonly id: string;
  readonly type: string;
  readonly field: string;
  /** The payload as JSON. */
  readonly text: string;
  readonly surface: Surface;
}): Rendering => {
  const { id, type, field, text, surface } = event;
  const frames = new Map<Framing, Uint8Array>();
  const matched = new Map<FilterNode, boolean>();
  let parsed: JsonObject | undefined;
  const parsedEvent = (): JsonObject => (parsed ??= { id, type, [field]: JSON.parse(text) as JsonObject });
  const framed = (framing: Framing): Uint8Array => {
    if (framing === 'grpc') return binaryOf(WATCH_RESPONSES[surface], { event: parsedEvent() });
    const line = `{"result":{"event":{"id":${JSON.stringify(id)},"type":"${type}","${field}":${text}}}}`;
    return Buffer.from(framing === 'ndjson' ? `${line}\n` : `id: ${id}\ndata: ${line}\n\n`);
  };
  return {
    frame: (framing) => {
      const frame = frames.get(framing) ?? framed(framing);
      frames.set(framing, frame);
      return frame;
    },
    matches: (filter, nowMs) => {
      const known = matched.get(filter);
      if (known !== undefined) return known;
      const result = evaluate(filter, parsedEvent(), nowMs());
      matched.set(filter, result);
      return result;
    },
  };
};
