type Values = { readonly [name: string]: unknown };

/**
 * What a row says of an event beside who, what and when: why a call was refused, and of what was done with the history which
 * part of it was meant. Empty for all others, whose details `audit show` prints.
 */
export const detailsOf = ({
  type,
  tenant,
  data,
}: {
  readonly type: string;
  readonly tenant: string;
  readonly data: Values;
}): string =>
  (Object.hasOwn(DETAILS, type) ? (DETAILS[type]?.(data, tenant) ?? '') : '').replaceAll('\n', ' ');

const textAt = (values: Values, name: string): string => {
  const value = Object.hasOwn(values, name) ? values[name] : undefined;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
};

const valuesAt = (values: Values, name: string): Values => {
  const value = Object.hasOwn(values, name) ? values[name] : undefined;
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Values) : {};
};

const listAt = (values: Values, name: string): readonly string[] | undefined => {
  const value = Object.hasOwn(values, name) ? values[name] : undefined;
  return Array.isArray(value) ? value.map(String) : undefined;
};

/** How much was asked for, and where a page went on, says nothing of what was read. */
const NO_FILTER = ['limit', 'after', 'newest', 'order'];

/** `kind cluster, types ClusterOrdered`; empty where there is no filter. */
const wordsOf = (filter: Values): string =>
  Object.entries(filter)
    .filter(([name]) => !NO_FILTER.includes(name))
    .map(([name, value]) => `${name} ${wordOf(value)}`)
    .join(', ');

/** What somebody had typed stands under a key: of who was erased a mark is left. */
const wordOf = (value: unknown): string => {
  if (Array.isArray(value)) return value.map(String).join('+');
  return typeof value === 'object' && value !== null ? '(erased)' : String(value);
};

const joined = (...parts: readonly string[]): string => parts.filter((part) => part !== '').join(': ');

/** Of whose history, where that is not the tenant's in whose history it stands. */
const whose = (data: Values, tenant: string): string => {
  const tenants = listAt(data, 'tenants');
  if (tenants === undefined) return ' of all tenants';
  return tenants.length === 1 && tenants[0] === tenant ? '' : ` of ${tenants.join(', ')}`;
};

/** The whole question where it is shown, else what of it this reader may know. */
const questionOf = (data: Values): Values =>
  Object.hasOwn(data, 'query') ? valuesAt(data, 'query') : valuesAt(data, 'asked');

const scopeOf = (data: Values): string => {
  const scope = valuesAt(data, 'scope');
  return [textAt(scope, 'kind'), textAt(scope, 'id')].join(' ').trim();
};

const person = (data: Values): string => `subject ${textAt(data, 'subjectId')}`;

const DETAILS: { readonly [type: string]: (data: Values, tenant: string) => string } = {
  RequestRefused: (data) => {
    // Of somebody unknown only words that are the same for everybody are kept; of an erased person the class is left.
    const [command, code, message, told, error] = ['command', 'code', 'message', 'told', 'error'].map(
      (name) => textAt(data, name),
    ) as [string, string, string, string, string];
    const why = message || told || (error === code ? '' : error);
    return `${command}: ${code}${why === '' ? '' : `, ${why}`}`;
  },
  RefusalsSuppressed: (data) =>
    `${textAt(data, 'count')} more were refused, ${textAt(data, 'since')} to ${textAt(data, 'until')}`,
  AuditRead: (data, tenant) =>
    joined(`${textAt(data, 'what')}${whose(data, tenant)}`, wordsOf(questionOf(data))),
  AuditReadNoticed: (data) => {
    const [kind, id] = [textAt(data, 'kind'), textAt(data, 'resourceId')];
    const object = kind === '' ? {} : id === '' ? { kind } : { [kind]: id };
    return joined(textAt(data, 'what'), wordsOf({ ...object, ...valuesAt(data, 'asked') }));
  },
  OperatorActed: (data) => {
    const object = [textAt(data, 'kind'), textAt(data, 'resourceId')].join(' ').trim();
    const parts = [textAt(data, 'on'), object, ...(listAt(data, 'hosts') ?? [])];
    const typed = Object.hasOwn(data, 'named') ? [wordOf(data['named'])] : [];
    return joined(textAt(data, 'act'), [...parts, ...typed].filter((part) => part !== '').join(', '));
  },
  LogRestored: (data) => `from a backup that ends at ${textAt(data, 'lastEventAt')}`,
  AuditExportRequested: (data) => {
    const request = valuesAt(data, 'request');
    const [format, tenant] = [textAt(request, 'format'), textAt(request, 'tenant')];
    const range = ['from', 'to'].filter((name) => Object.hasOwn(request, name));
    const filter = {
      ...valuesAt(request, 'filter'),
      ...Object.fromEntries(range.map((name) => [name, request[name]])),
    };
    return joined(`${format} of ${tenant === '' ? 'the whole log' : tenant}`.trim(), wordsOf(filter));
  },
  AuditExportCompleted: (data) => `${textAt(data, 'events')} events, ${textAt(data, 'bytes')} bytes`,
  AuditExportFailed: (data) => textAt(data, 'reason'),
  AuditExportDiscarded: (data) => textAt(data, 'reason'),
  LegalHoldPlaced: scopeOf,
  LegalHoldReleased: scopeOf,
  ErasureBegun: person,
  SubjectKeyDestroyed: person,
  AuditGrantGiven: (data) => `${person(data)}${whose(data, '')}`,
  AuditGrantNoticed: person,
};
