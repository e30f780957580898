import { setImmediate } from 'node:timers/promises';
import type { JsonSchemas } from '../../../app/json-schema/json-schemas.ts';
import { isPublished } from '../../../domain/catalog/cluster-catalog-item.resource.ts';
import { unusableReason } from '../../../domain/catalog/cluster-version.resource.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import {
  clusterGovernance,
  defaultMisfit,
  templateMisfit,
} from '../../../domain/clusters/item-governance.ts';
import type { CatalogueObject } from '../../../domain/clusters/catalogue.ts';
import { trialRejection } from '../../../domain/clusters/item-trial.ts';
import { specSegments } from '../../../domain/clusters/spec-paths.ts';
import { isObject, listAt, objectAt, sameJson, stringAt } from '../../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { valueAtPlace, withValueAtPlace } from '../../../domain/document-places.ts';
import { referenceOf, type Reference } from '../../../domain/references.ts';
import type { ResourceRow, Visibility } from '../../../projections/read-models.ts';
import { ApiError, invalid, objectNotFound } from '../../errors.ts';
import type { Handler, IdMessage } from '../call.ts';
import { refused, type CreateServices, type Creation } from '../creates.ts';
import { createDocument, documentRevision } from '../documents.ts';
import { canonicalDocument, MESSAGES } from '../messages.ts';
import { find, problemText, type Home } from '../references.ts';
import type { Principal } from '../principal.ts';
import type { KindService } from '../service-table.ts';
import type { RoomCheck } from '../clusters.ts';
import type { Revision } from '../updates.ts';

/** What an item promises is checked when it is written, so that an order cannot fail by it (OSAC). */
type Services = Pick<CreateServices, 'resources' | 'messageOf'> & {
  readonly schemas: JsonSchemas;
  readonly room: RoomCheck;
};

type Place = {
  readonly home: Home;
  readonly visibility: Visibility;
  readonly template: ResourceRow | undefined;
};

export const catalogItemCreation = (services: Services): Creation<DocumentCommand> => ({
  resolve: async (object) => {
    const { tenant, project, principal, found } = object;
    const document = await checkedItem(object.document, services, {
      home: { tenant, project },
      visibility: principal.visibility,
      template: found.get('template'),
    });
    return {
      command: (secrets, abandonedBefore) =>
        createDocument({ ...object, document }, secrets, abandonedBefore),
    };
  },
});

/** A template that was changed meanwhile is looked at again only when the item itself changes. */
export const catalogItemRevision = (services: Services): Revision<DocumentCommand> => ({
  command: async (change) => {
    const { before, after, tenant, principal, found } = change;
    const same = ['template', 'field_definitions'].every((field) => sameJson(before[field], after[field]));
    if (same) return documentRevision.command(change);
    const id = stringAt(objectAt(after, 'template'), 'id');
    const document = await checkedItem(after, services, {
      home: { tenant, project: stringAt(objectAt(after, 'metadata'), 'project') },
      visibility: principal.visibility,
      template: found.get('template') ?? services.resources.get('clusterTemplate', id, { all: true }),
    });
    return documentRevision.command({ ...change, after: document });
  },
});

const checkedItem = async (document: JsonObject, services: Services, place: Place): Promise<JsonObject> => {
  await checkSchemas(document, services);
  const parsed = place.template === undefined ? undefined : objectOf(place.template);
  const wrong =
    (parsed === undefined ? undefined : templateMisfit(document, parsed)) ??
    defaultMisfit(document, services.schemas.judge());
  if (wrong !== undefined) throw refused(wrong);
  checkDefaults(document, parsed?.document ?? {});
  const hostType = (reference: Reference): CatalogueObject | undefined => {
    const result = find({ kind: 'hostType', local: false }, reference, place.home, services.resources, ALL);
    return 'row' in result ? objectOf(result.row) : undefined;
  };
  if (parsed !== undefined) {
    const { tenant } = place.home;
    const trial = trialRejection(document, parsed, { hostType }, (nodeSets) =>
      services.room.never({ tenant, template: parsed.id, nodeSets }),
    );
    if (trial !== undefined) throw refused(trial);
  }
  return withVersionDefault(document, services, place);
};

const ALL = { all: true } as const;

const objectOf = ({ id, name, tenant, privateJson, revision, deleting }: ResourceRow): CatalogueObject => ({
  id,
  name,
  tenant,
  document: JSON.parse(privateJson) as JsonObject,
  secrets: {},
  revision,
  deleting,
});

/** Sizes of all patterns of one item: the first order after a start reads them all at once. */
const MAX_PATTERNS = 3_000;

const checkSchemas = async (document: JsonObject, { schemas }: Services): Promise<void> => {
  let patterns = 0;
  for (const [index, definition] of listAt(document, 'field_definitions').entries()) {
    const schema = stringAt(definition, 'validation_schema');
    if (schema === '') continue;
    const read = schemas.read(schema);
    patterns += read.ok ? read.patternSize : 0;
    const problem = read.ok
      ? patterns > MAX_PATTERNS && 'the patterns of all field definitions together are too large'
      : read.problem;
    if (problem !== false)
      throw invalid(
        `the validation_schema of field definition '${stringAt(definition, 'path')}' cannot be used: ${problem}`,
        `field_definitions.${index}.validation_schema`,
      );
    // A pattern may take milliseconds to read, and there may be a hundred definitions.
    await setImmediate();
  }
};

/** A default must be what the field takes, written as it is shown: it is put into specs as it stands. */
const checkDefaults = (document: JsonObject, template: JsonObject): void => {
  const message = MESSAGES['Cluster']?.private;
  if (message === undefined) throw new ApiError('INTERNAL', 'clusters have no message');
  const { asStored } = clusterGovernance({ name: '', document }, { document: template }, () => undefined);
  for (const [index, definition] of listAt(document, 'field_definitions').entries()) {
    const fallback = isObject(definition) ? (definition['default'] ?? undefined) : undefined;
    const segments = specSegments(stringAt(definition, 'path'));
    if (fallback === undefined || segments === undefined) continue;
    const stored = asStored(segments, fallback);
    const at = ['spec', ...segments];
    const field = `field_definitions.${index}.default`;
    const shown = valueAtPlace(canonical(message, at, stored, field), at);
    if (shown !== undefined && !sameJson(shown, stored))
      throw invalid(
        `the default of field definition '${stringAt(definition, 'path')}' must be written as clusters show it`,
        field,
      );
  }
};

const canonical = (
  message: Parameters<typeof canonicalDocument>[0],
  at: readonly string[],
  value: JsonValue,
  field: string,
): JsonObject => {
  try {
    return canonicalDocument(message, withValueAtPlace({}, at, value) as JsonObject);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw invalid(
      `the default of this field definition is not what the field takes: ${error.message}`,
      field,
    );
  }
};

/** A default version is a reference like any other: it must exist and be usable, and is stored with id and name. */
const withVersionDefault = (
  document: JsonObject,
  services: Services,
  { home, visibility }: Place,
): JsonObject => {
  const definitions = listAt(document, 'field_definitions');
  const index = definitions.findIndex((definition) => stringAt(definition, 'path') === 'version');
  const definition = definitions[index];
  if (!isObject(definition) || definition['default'] === undefined) return document;
  const field = `field_definitions.${index}.default`;
  const reference = referenceOf(definition['default']) ?? {};
  const result = find(
    { kind: 'clusterVersion', local: false },
    reference,
    home,
    services.resources,
    visibility,
  );
  if ('problem' in result)
    throw invalid(problemText(services.messageOf('clusterVersion'), reference, result.problem), field);
  const { id, name, privateJson, deleting } = result.row;
  const reason = deleting
    ? 'it is being deleted'
    : unusableReason(objectAt(JSON.parse(privateJson) as JsonObject, 'spec'));
  if (reason !== undefined) throw invalid(`cluster version '${name}' cannot be a default: ${reason}`, field);
  const resolved = definitions.map((other, i) =>
    i === index ? { ...definition, default: { id, name } } : other,
  );
  return { ...document, field_definitions: resolved };
};

/**
 * On the public surface an unpublished item is there only for as long as something of the caller's own tenants refers
 * to it (OSAC): what others do with it is not told. Of the past counts whether it was published then: a draft stays
 * hidden when it is published later, or deleted. Who referred to it then is not known; who does now has seen it. Those
 * who may write it, in their own tenant, can change, publish and delete it all the same.
 */
export const hidingUnpublished = (
  service: KindService,
  { resources }: Pick<CreateServices, 'resources'>,
): KindService => {
  const isReferred = (id: string, { admin, tenants }: Principal): boolean =>
    resources.isReferenced(service.kind, id, admin ? ALL : { tenants });
  const isHidden = (id: string, principal: Principal): boolean => {
    const row = resources.get(service.kind, id, principal.visibility);
    return (
      row !== undefined &&
      !isPublished(JSON.parse(row.publicJson) as JsonObject) &&
      !isReferred(id, principal)
    );
  };
  /** What the caller may not write is refused as something that is there: not so when it cannot be read either. */
  const unlessHidden =
    <Message extends IdMessage>(write: Handler<Message>): Handler<Message> =>
    async (call) => {
      const { message, principal } = call;
      const hidden = isHidden(message.id, principal);
      try {
        return await write(call);
      } catch (error) {
        const isThere = error instanceof ApiError && error.error === 'PERMISSION_DENIED';
        if (isThere && hidden) throw objectNotFound(message.id);
        throw error;
      }
    };
  return {
    ...service,
    update: unlessHidden(service.update),
    remove: unlessHidden(service.remove),
    get: async (call) => {
      const { message, principal } = call;
      const { id, asOf } = message;
      if (asOf !== undefined) {
        const answer = await service.get(call);
        const isShown =
          isPublished(JSON.parse(String(answer.body)) as JsonObject) || isReferred(id, principal);
        if (isShown) return answer;
        throw objectNotFound(id);
      }
      if (isHidden(id, principal)) throw objectNotFound(id);
      return service.get(call);
    },
  };
};
