import { setImmediate } from 'node:timers/promises';
import type { JsonSchemas } from '../../../app/json-schema/json-schemas.ts';
import { isPublished } from '../../../domain/catalog/catalog-item.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import type { GovernedKind } from '../../../domain/catalog/field-governance.ts';
import { defaultMisfit, itemGovernance, templateMisfit } from '../../../domain/catalog/item-governance.ts';
import type { CatalogueObject } from '../../../domain/clusters/catalogue.ts';
import type { Rejection } from '../../../domain/decider.ts';
import { isObject, listAt, objectAt, sameJson, stringAt } from '../../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { valueAtPlace, withValueAtPlace } from '../../../domain/document-places.ts';
import { referenceOf } from '../../../domain/references.ts';
import type { ResourceRow, Visibility } from '../../../projections/read-models.ts';
import { ApiError, invalid, objectNotFound } from '../../errors.ts';
import type { Handler, IdMessage } from '../call.ts';
import { refused, type CreateServices, type Creation } from '../creates.ts';
import { createDocument, documentRevision } from '../documents.ts';
import { canonicalDocument, MESSAGES } from '../messages.ts';
import { find, problemText, type Home } from '../references.ts';
import type { Principal } from '../principal.ts';
import type { KindService } from '../service-table.ts';
import type { Revision } from '../updates.ts';

/** What an item promises is checked when it is written, so that an order cannot fail by it (OSAC). */
type Services = Pick<CreateServices, 'resources' | 'messageOf'> & { readonly schemas: JsonSchemas };

/** What is offered. */
export type Offered = {
  readonly governed: GovernedKind;
  readonly templateKind: string;
  /** Fields whose default is a reference; why nobody may order what it means, if so. */
  readonly references: {
    readonly [path: string]: {
      readonly kind: string;
      readonly words: string;
      readonly unusable: (document: JsonObject) => string | undefined;
    };
  };
  /** Why nobody could order it with these defaults. */
  readonly trial?: (item: JsonObject, template: CatalogueObject, home: Home) => Rejection | undefined;
};

type Place = {
  readonly home: Home;
  readonly visibility: Visibility;
  readonly template: ResourceRow | undefined;
};

export const catalogItemCreation = (services: Services, offered: Offered): Creation<DocumentCommand> => ({
  resolve: async (object) => {
    const { tenant, project, principal, found } = object;
    const document = await checkedItem(object.document, services, offered, {
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
export const catalogItemRevision = (services: Services, offered: Offered): Revision<DocumentCommand> => ({
  command: async (change) => {
    const { before, after, tenant, principal, found } = change;
    const same = ['template', 'field_definitions'].every((field) => sameJson(before[field], after[field]));
    if (same) return documentRevision.command(change);
    const id = stringAt(objectAt(after, 'template'), 'id');
    const document = await checkedItem(after, services, offered, {
      home: { tenant, project: stringAt(objectAt(after, 'metadata'), 'project') },
      visibility: principal.visibility,
      template: found.get('template') ?? services.resources.get(offered.templateKind, id, ALL),
    });
    return documentRevision.command({ ...change, after: document });
  },
});

const checkedItem = async (
  document: JsonObject,
  services: Services,
  offered: Offered,
  place: Place,
): Promise<JsonObject> => {
  const { governed } = offered;
  await checkSchemas(document, services);
  const parsed = place.template === undefined ? undefined : objectOf(place.template);
  const wrong =
    (parsed === undefined ? undefined : templateMisfit(governed, document, parsed)) ??
    defaultMisfit(governed, document, services.schemas.judge());
  if (wrong !== undefined) throw refused(wrong);
  checkDefaults(document, parsed?.document ?? {}, governed);
  const trial = parsed === undefined ? undefined : offered.trial?.(document, parsed, place.home);
  if (trial !== undefined) throw refused(trial);
  return withReferences(document, services, offered, place);
};

const ALL = { all: true } as const;

export const objectOf = ({
  id,
  name,
  tenant,
  privateJson,
  revision,
  deleting,
}: ResourceRow): CatalogueObject => ({
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
const checkDefaults = (document: JsonObject, template: JsonObject, governed: GovernedKind): void => {
  const message = MESSAGES[governed.message]?.private;
  if (message === undefined) throw new ApiError('INTERNAL', `a ${governed.words} has no message`);
  const { asStored } = itemGovernance(
    governed,
    { name: '', document },
    { document: template },
    () => undefined,
  );
  for (const [index, definition] of listAt(document, 'field_definitions').entries()) {
    const fallback = isObject(definition) ? (definition['default'] ?? undefined) : undefined;
    const segments = governed.segmentsOf(stringAt(definition, 'path'));
    if (fallback === undefined || segments === undefined) continue;
    const stored = asStored(segments, fallback);
    const at = ['spec', ...segments];
    const field = `field_definitions.${index}.default`;
    const shown = valueAtPlace(canonical(message, at, stored, field), at);
    if (shown !== undefined && !sameJson(shown, stored))
      throw invalid(
        `the default of field definition '${stringAt(definition, 'path')}' must be written as ${governed.words}s show it`,
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

/** Such a default is a reference like any other: what it means must exist and be usable, and is stored with id and name. */
const withReferences = (
  document: JsonObject,
  services: Services,
  { references }: Offered,
  { home, visibility }: Place,
): JsonObject => {
  const definitions = listAt(document, 'field_definitions').map((definition, index) => {
    const target = references[stringAt(definition, 'path')];
    if (target === undefined || !isObject(definition) || definition['default'] === undefined)
      return definition;
    const { kind, words, unusable } = target;
    const field = `field_definitions.${index}.default`;
    const reference = referenceOf(definition['default']) ?? {};
    const result = find({ kind, local: false }, reference, home, services.resources, visibility);
    if ('problem' in result)
      throw invalid(problemText(services.messageOf(kind), reference, result.problem), field);
    const { id, name, privateJson, deleting } = result.row;
    const reason = deleting ? 'it is being deleted' : unusable(JSON.parse(privateJson) as JsonObject);
    if (reason !== undefined) throw invalid(`${words} '${name}' cannot be a default: ${reason}`, field);
    return { ...definition, default: { id, name } };
  });
  return definitions.length === 0 ? document : { ...document, field_definitions: definitions };
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
