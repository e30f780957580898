import type { AnyKind } from '../../../src/domain/kinds.ts';
import { RIGHTS, type AnyMethod } from '../../../src/domain/tenancy/rights.ts';

const COLUMNS = [
  'client',
  'tenant-reader',
  'tenant-admin',
  'tenant-idp-manager',
  'project-member',
  'project-manager',
] as const;
const TITLES = [
  'no realm role, no project',
  '`tenant-reader`, `auditor`',
  '`tenant-admin`',
  '`tenant-idp-manager`',
  'viewer of a project',
  'manager of a project',
];
/** What a caller has beside the role of the column: a member is a viewer, a manager both. */
const WITH: { readonly [R in (typeof COLUMNS)[number]]?: readonly (typeof ALSO)[number][] } = {
  'project-member': ['project-viewer'],
  'project-manager': ['project-member', 'project-viewer'],
};
const ALSO = ['project-member', 'project-viewer'] as const;

const LETTERS: Readonly<Record<AnyMethod, string>> = {
  List: 'L',
  Get: 'G',
  Create: 'C',
  Update: 'U',
  Delete: 'D',
  GetKubeconfig: 'K',
  GetPassword: 'P',
  GetTimeline: 'T',
  Watch: 'W',
};
const ORDER = Object.keys(LETTERS) as readonly AnyMethod[];
const STANDARD: readonly AnyMethod[] = ['List', 'Get', 'Create', 'Update', 'Delete'];

type Row = { readonly shown: string; readonly service: string; readonly offered: readonly AnyMethod[] };

/** Who may do what on the public surface, made from the table that the service decides by. */
export const rightsTable = (kinds: readonly AnyKind[]): string => {
  const rows: Row[] = kinds
    .filter(({ methods }) => methods.public.length > 0)
    .map(({ collection, service, methods }) => ({ shown: collection, service, offered: methods.public }));
  const events: Row = { shown: 'events', service: 'Events', offered: [] };
  return [
    `| | ${TITLES.join(' | ')} |`,
    `|---|${TITLES.map(() => '---|').join('')}`,
    ...[...rows.sort((a, b) => a.shown.localeCompare(b.shown)), events].map(
      (row) =>
        `| \`${row.shown}\` | ${COLUMNS.map((role) => cell(row, rightsOf(role, row.service))).join(' | ')} |`,
    ),
  ].join('\n');
};

const rightsOf = (role: (typeof COLUMNS)[number], service: string): readonly AnyMethod[] => {
  const given = [role, ...(WITH[role] ?? [])].flatMap((one) => RIGHTS[one][service] ?? []);
  return ORDER.filter((method) => given.includes(method));
};

/** Rights to what the kind does not offer are none. */
const cell = ({ offered }: Row, rights: readonly AnyMethod[] = []): string =>
  rights
    .filter((method) => !STANDARD.includes(method) || offered.includes(method))
    .map((method) => LETTERS[method])
    .join('') || '–';
