import type { AnyKind } from '../../src/domain/kinds.ts';
import { RIGHTS, type AnyMethod } from '../../src/domain/tenancy/rights.ts';

const COLUMNS = [
  'client',
  'tenant-admin',
  'tenant-idp-manager',
  'project-viewer',
  'project-manager',
] as const;
const TITLES = ['every user', '`tenant-admin`', '`tenant-idp-manager`', 'viewer of a project', 'manager'];

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
        `| \`${row.shown}\` | ${COLUMNS.map((role) => cell(row, RIGHTS[role][row.service])).join(' | ')} |`,
    ),
  ].join('\n');
};

/** Rights to what the kind does not offer are none. */
const cell = ({ offered }: Row, rights: readonly AnyMethod[] = []): string =>
  rights
    .filter((method) => !STANDARD.includes(method) || offered.includes(method))
    .map((method) => LETTERS[method])
    .join('') || '–';
