import type { JsonSchemas } from '../../../app/json-schema/json-schemas.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import type { AfterWrite } from '../after-write.ts';
import type { ExtraMessage, Handler } from '../call.ts';
import type { CatalogueReader } from '../catalogue.ts';
import type { Creation, CreateServices } from '../creates.ts';
import type { HubAdapters } from '../credentials.ts';
import type { Removal } from '../deletes.ts';
import type { Surface } from '../messages.ts';
import type { KindService } from '../service-table.ts';
import type { RoomCheck } from '../clusters.ts';
import type { Revision } from '../updates.ts';

/** What a kind does in its own way; everything else is common to all that share the document decider. */
export type KindParts<C = DocumentCommand> = {
  readonly creation?: Creation<C>;
  readonly revision?: Revision<C>;
  readonly removal?: Partial<Removal<C>>;
  readonly after?: AfterWrite;
  /** What it serves in its own way, on one surface. */
  readonly serving?: (service: KindService, surface: Surface) => KindService;
  /** What answers the routes that it declares for itself, by path. */
  readonly handlers?: { readonly [path: string]: Handler<ExtraMessage> };
};

export type PartServices = CreateServices & {
  readonly schemas: JsonSchemas;
  readonly hubs: HubAdapters;
  readonly room: RoomCheck;
  readonly catalogue: CatalogueReader;
  /** ISO duration that an order may wait for a place, unless it says so itself. */
  readonly placementDeadline?: string;
  /** GiB that one disk of a compute instance may have. */
  readonly maxDiskGib?: number;
  readonly maxVolumeGib?: number;
};
