import { actingKinds, meteredKinds } from '../domain/acting-kinds.ts';
import { kinds } from '../domain/kinds.ts';
import { revealing, type OpenPersonal } from '../domain/personal.ts';
import { registry } from '../domain/registry.ts';
import { auditView } from './audit/audit-view.ts';
import type { Decode } from './resources/fold.ts';
import { resourcesView } from './resources/resources-view.ts';
import { timelineView, type EventWords } from './timeline/timeline-view.ts';
import { usageView } from './usage/usage-view.ts';
import type { View } from './view.ts';

/** Settings of the views as plain JSON: worker threads build their own instances from it. */
export type ViewsConfig = {
  /** With the Merkle tree and the index of auditors (role `auditor`). Default: without. */
  readonly audit?: boolean;
};

/** What the views need that is no plain JSON; worker threads make their own. */
export type ViewsPorts = {
  /** Opens personal data, so that documents show it; without it they hold ciphertext. */
  readonly open?: OpenPersonal;
};

/** Aggregates without a document whose old commands must still be recognised (command runner). */
const COMMAND_CATEGORIES = ['agentPool', 'hubCapacity', 'name', 'prefixPool', 'vlanPool'] as const;

const codec: Decode & Pick<EventWords, 'decode'> = {
  decode: ({ type, data, metadata }) => {
    const version = metadata['schemaVersion'];
    return { type, data: registry.upcast(type, typeof version === 'number' ? version : 1, data) };
  },
  typeOf: registry.get,
};

/** Every view of the service. */
export const createViews = ({ audit = false, open }: ViewsConfig & ViewsPorts = {}): readonly View[] => [
  resourcesView({
    kinds: open === undefined ? kinds : kinds.map((kind) => revealing(kind, { open })),
    codec,
    commandsOf: COMMAND_CATEGORIES,
  }),
  timelineView({
    kinds: actingKinds,
    words: { decode: codec.decode, redact: registry.redact },
  }),
  usageView({ codec, kinds: meteredKinds }),
  ...(audit ? [auditView()] : []),
];
