import type { Secrets } from '../catalog/document.ts';
import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import { referenceOf } from '../references.ts';
import type { SecretRef } from '../secret-ref.ts';
import type { Catalogue, CatalogueObject } from './catalogue.ts';
import type { NamedSecret } from './events.ts';

/** Where a cluster's pull secret comes from: a value, or an object of kind secret (OSAC). */
const FIELD = 'spec.pull_secret_secret';

/** Both at once would leave open which one counts. */
export const pullSecretTwice = (): Rejection =>
  invalid(
    'PULL_SECRET_TWICE',
    FIELD,
    "give either 'pull_secret' or 'pull_secret_secret', not both; null removes the one that is stored",
  );

/** What an order takes: what its spec says, else what its template has as default. */
export const orderedPullSecret = (
  spec: JsonObject,
  template: CatalogueObject,
  catalogue: Pick<Catalogue, 'secret'>,
): { readonly pullSecret?: SecretRef; readonly pullSecretSecret?: NamedSecret } | Rejection => {
  const sent = stringAt(spec, 'pull_secret') !== '';
  const reference = referenceOf(spec['pull_secret_secret']);
  if (reference !== undefined) {
    const secret = catalogue.secret(reference);
    if (sent) return pullSecretTwice();
    // The caller's own references were checked before; what is missing here is a default of a catalogue item.
    return secret === undefined
      ? invalid('SECRET_MISSING', FIELD, 'the secret that the catalog item names is not there')
      : { pullSecretSecret: { id: secret.id, name: secret.name } };
  }
  if (sent) return {};
  const byTemplate = template.secrets['spec_defaults.pull_secret'];
  // A template's default belongs to the template's tenant: the reference says so.
  if (byTemplate !== undefined)
    return { pullSecret: { ...byTemplate, tenant: byTemplate.tenant ?? template.tenant } };
  const named = objectAt(objectAt(template.document, 'spec_defaults'), 'pull_secret_secret');
  const id = stringAt(named, 'id');
  return id === '' ? {} : { pullSecretSecret: { id, name: stringAt(named, 'name') } };
};

const DATA = 'data.';
/** Keys under which a pull secret lies, the first that is there: that of Kubernetes, and those that people choose. */
const KEYS = ['.dockerconfigjson', 'pull-secret', 'pull_secret'];

/** The value of a secret object that hubs are given. `tenant`: whose it is. */
export const pullSecretIn = (secret: {
  readonly name: string;
  readonly tenant: string;
  readonly secrets: Secrets;
}): SecretRef | Rejection => {
  const { name, tenant, secrets } = secret;
  const path = KEYS.map((key) => `${DATA}${key}`).find((candidate) => Object.hasOwn(secrets, candidate));
  const value = path === undefined ? undefined : secrets[path];
  return value === undefined
    ? invalid(
        'NO_PULL_SECRET',
        FIELD,
        `secret '${name}' holds no pull secret: its data needs a key ${KEYS.map((key) => `'${key}'`).join(' or ')}`,
      )
    : { ...value, tenant: value.tenant ?? tenant };
};
