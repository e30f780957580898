import { resourceName } from './types.ts';

export type Cause = { readonly reason: string; readonly message: string; readonly field: string };

export type StatusDetails = {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Cause[];
  readonly retryAfterSeconds?: number;
};

/** The body of every failed request (`kind: Status`). */
export type StatusBody = {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: Readonly<Record<string, never>>;
  readonly status: 'Failure';
  readonly message: string;
  readonly reason: string;
  readonly details?: StatusDetails;
  readonly code: number;
};

/** A request that is refused; the server answers `body`. */
export class StatusError extends Error {
  readonly body: StatusBody;
  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.name = 'StatusError';
    this.body = statusBody(code, reason, message, details);
  }
}

export const statusBody = (
  code: number,
  reason: string,
  message: string,
  details?: StatusDetails,
): StatusBody => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message,
  reason,
  ...(details === undefined ? {} : { details }),
  code,
});

type Resource = { readonly plural: string; readonly group: string };

const about = ({ plural, group }: Resource, name: string): StatusDetails => ({
  ...(name === '' ? {} : { name }),
  ...(group === '' ? {} : { group }),
  kind: plural,
});

export const notFound = (resource: Resource, name: string): StatusError =>
  new StatusError(404, 'NotFound', `${resourceName(resource)} "${name}" not found`, about(resource, name));

/** A name that is taken, by a live object or by one that is on its way out (OSAC's operator). */
export const alreadyExists = (resource: Resource, name: string, deleting: boolean): StatusError => {
  const text = `${resourceName(resource)} "${name}" already exists`;
  const message = deleting ? `object is being deleted: ${text}` : text;
  return new StatusError(409, 'AlreadyExists', message, about(resource, name));
};

export const conflict = (resource: Resource, name: string, why = MODIFIED): StatusError => {
  const message = `Operation cannot be fulfilled on ${resourceName(resource)} "${name}": ${why}`;
  return new StatusError(409, 'Conflict', message, about(resource, name));
};

const MODIFIED =
  'the object has been modified; please apply your changes to the latest version and try again';

export const forbidden = (
  resource: Resource,
  name: string,
  why: string,
  causes?: readonly Cause[],
): StatusError => {
  const subject = name === '' ? resourceName(resource) : `${resourceName(resource)} "${name}"`;
  const details = { ...about(resource, name), ...(causes === undefined ? {} : { causes }) };
  return new StatusError(403, 'Forbidden', `${subject} is forbidden: ${why}`, details);
};

/** 422. `kind` is the kind's name, or its plural where the real server says so. */
export const invalid = (kind: string, group: string, name: string, causes: readonly Cause[]): StatusError => {
  const subject = group === '' ? kind : `${kind}.${group}`;
  const texts = causes.map(({ field, message }) => `${field}: ${message}`);
  const why = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  const details = { name, ...(group === '' ? {} : { group }), kind, causes };
  return new StatusError(422, 'Invalid', `${subject} "${name}" is invalid: ${why}`, details);
};

export const badRequest = (message: string): StatusError => new StatusError(400, 'BadRequest', message);

export const unauthorized = (): StatusError => new StatusError(401, 'Unauthorized', 'Unauthorized');

export const expired = (message: string): StatusError => new StatusError(410, 'Expired', message);

export const unsupportedMediaType = (accepted: readonly string[]): StatusError =>
  new StatusError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );

export const methodNotAllowed = (): StatusError =>
  new StatusError(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    {},
  );

/** What `fieldValue…` problems a validator found: the field, what is wrong and which kind of fault it is. */
export const cause = (field: string, reason: string, message: string): Cause => ({ reason, message, field });

export const invalidValue = (field: string, value: unknown, message: string): Cause =>
  cause(field, 'FieldValueInvalid', `Invalid value: ${JSON.stringify(value)}: ${message}`);
