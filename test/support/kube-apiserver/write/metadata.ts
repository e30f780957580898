import { sameJson } from '../../../../src/domain/json-tools.ts';
import { cause, invalidValue, type Cause } from '../errors.ts';
import type { Kind, ObjectMeta } from '../types.ts';

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const VALUE = `(${QUALIFIED})?`;

const whole = (pattern: string): RegExp => new RegExp(`^${pattern}$`);

/** Names: DNS subdomains; namespaces and services are one label; roles and bindings may hold almost anything. */
export const nameFaults = (kind: Kind, name: string): Cause[] => {
  const field = 'metadata.name';
  if (kind.group === 'rbac.authorization.k8s.io') {
    return /[/%]|^\.{1,2}$/.test(name) ? [invalidValue(field, name, "may not contain '/' or '%'")] : [];
  }
  const label = kind.group === '' && (kind.plural === 'namespaces' || kind.plural === 'services');
  const limit = label ? 63 : 253;
  const faults: Cause[] = [];
  if (name.length > limit) faults.push(invalidValue(field, name, `must be no more than ${limit} bytes`));
  if (!whole(label ? LABEL : SUBDOMAIN).test(name)) {
    faults.push(invalidValue(field, name, label ? NOT_A_LABEL : NOT_A_SUBDOMAIN));
  }
  return faults;
};

const NOT_A_LABEL =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end " +
  `with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`;
const NOT_A_SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start " +
  `and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`;
const NOT_A_VALUE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start " +
  "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for " +
  `validation is '(${QUALIFIED})?')`;

export const isLabelValue = (value: string): boolean => value.length <= 63 && whole(VALUE).test(value);

/** Faults of labels and annotations. */
export const metadataFaults = ({ labels, annotations, finalizers }: ObjectMeta): Cause[] => [
  ...Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...keyFaults('metadata.labels', key),
    ...valueFaults('metadata.labels', value),
  ]),
  ...Object.keys(annotations ?? {}).flatMap((key) => keyFaults('metadata.annotations', key.toLowerCase())),
  ...annotationSize(annotations ?? {}),
  ...(finalizers ?? []).flatMap((one) => keyFaults('metadata.finalizers', one)),
];

const valueFaults = (field: string, value: unknown): Cause[] => {
  const text = String(value);
  if (text.length > 63) return [invalidValue(field, text, 'must be no more than 63 bytes')];
  return whole(VALUE).test(text) ? [] : [invalidValue(field, text, NOT_A_VALUE)];
};

const keyFaults = (field: string, key: string): Cause[] => {
  const [prefix, name] = key.includes('/')
    ? [key.slice(0, key.indexOf('/')), key.slice(key.indexOf('/') + 1)]
    : ['', key];
  const good =
    whole(QUALIFIED).test(name) && name.length <= 63 && (prefix === '' || whole(SUBDOMAIN).test(prefix));
  return good
    ? []
    : [invalidValue(field, key, 'name part must consist of alphanumeric characters, ' + "'-', '_' or '.'")];
};

const ANNOTATION_LIMIT = 262_144;

const annotationSize = (annotations: { readonly [key: string]: string }): Cause[] => {
  const bytes = Object.entries(annotations).reduce(
    (sum, [key, value]) => sum + key.length + String(value).length,
    0,
  );
  if (bytes <= ANNOTATION_LIMIT) return [];
  const message = `Too long: may not be more than ${ANNOTATION_LIMIT} bytes`;
  return [cause('metadata.annotations', 'FieldValueTooLong', message)];
};

/** What may not be done to the metadata of a stored object. */
export const metadataStepFaults = (before: ObjectMeta, after: ObjectMeta): Cause[] => {
  const faults: Cause[] = [];
  const added = (after.finalizers ?? []).filter((one) => !(before.finalizers ?? []).includes(one));
  if (before.deletionTimestamp !== undefined && added.length > 0) {
    const list = `[]string{${added.map((one) => JSON.stringify(one)).join(', ')}}`;
    const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ${list}`;
    faults.push(cause('metadata.finalizers', 'FieldValueForbidden', message));
  }
  for (const field of ['name', 'namespace', 'uid'] as const) {
    if (!sameJson(before[field] ?? '', after[field] ?? '')) {
      faults.push(invalidValue(`metadata.${field}`, after[field] ?? '', 'field is immutable'));
    }
  }
  return faults;
};

/** Five characters that cannot spell a word, as `generateName` gets them. */
export const nameSuffix = (): string =>
  Array.from({ length: 5 }, () => SUFFIX[Math.floor(Math.random() * SUFFIX.length)]).join('');

const SUFFIX = 'bcdfghjklmnpqrstvwxz2456789';
