import type { DatabaseSync } from 'node:sqlite';
import type { RecordedEvent } from '../../app/log/event-store.ts';
import { objectAt, own } from '../../domain/json-tools.ts';
import { isEncrypted } from '../../domain/personal.ts';
import type { ReadConnection } from '../runner/read-connection.ts';
import { searchable } from './facts.ts';

/**
 * Who has acted in which tenant, with a leaf of its own that says who that is: user names are ciphertext in events, and
 * nowhere else, so whoever looks for one opens one event of each person. A person whose key is destroyed has no name here.
 */
export const PEOPLE_SCHEMA = `
  -- idx: the first leaf of the subject in the tenant that tells a name (named 1), else its first one
  CREATE TABLE people (
    tenant INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    named INTEGER NOT NULL,
    PRIMARY KEY (tenant, subject)
  ) STRICT, WITHOUT ROWID;
`;

export const PEOPLE_STATEMENTS = {
  actsIn: 'SELECT 1 FROM people WHERE tenant = ? AND subject = ?',
  peopleOf: `SELECT tenant, subject, idx FROM people WHERE tenant = ? AND subject > ?
    ORDER BY tenant, subject LIMIT ?`,
  everybody: `SELECT tenant, subject, idx FROM people WHERE (tenant, subject) > (?, ?)
    ORDER BY tenant, subject LIMIT ?`,
  lastOfSubject: 'SELECT idx, tenant FROM leaves WHERE subject = ? ORDER BY idx DESC LIMIT 1',
} as const;

/** Writes the table; `tenant` and `subject` by the numbers of their names. */
export type PeopleWriter = {
  readonly add: (
    index: number,
    who: { readonly tenant: number; readonly subject: number },
    event: Pick<RecordedEvent, 'metadata'>,
  ) => void;
  /** Forgets what is remembered: the transaction was rolled back. */
  readonly reset: () => void;
};

/** Pairs that are remembered at most, so that an event of somebody known costs no statement. */
const MOST_REMEMBERED = 20_000;

export const openPeople = (db: DatabaseSync): PeopleWriter => {
  const put = db.prepare(`INSERT INTO people VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE
    SET idx = excluded.idx, named = 1 WHERE named = 0 AND excluded.named = 1`);
  const known = new Map<string, boolean>();
  return {
    add: (index, { tenant, subject }, { metadata }) => {
      const pair = `${tenant} ${subject}`;
      const remembered = known.get(pair);
      if (remembered === true) return;
      const named = isEncrypted(own(objectAt(metadata, 'actor'), 'personal'));
      if (remembered === false && !named) return;
      put.run(tenant, subject, index, named ? 1 : 0);
      if (known.size >= MOST_REMEMBERED) known.clear();
      known.set(pair, named);
    },
    reset: () => known.clear(),
  };
};

/** One person in one tenant, and leaves of it that may tell the name: the first that did, and the last of all. */
export type Person = {
  readonly tenant: string;
  readonly subject: string;
  readonly leaves: readonly number[];
};

/** Where a list of people goes on. */
export type PersonPlace = { readonly tenant: number; readonly subject: number };

export type PeopleReader = {
  /** Whether a subject has acted in any of the tenants. */
  readonly hasActed: (tenants: 'all' | readonly string[], subject: string) => boolean;
  /** People of the tenants behind a place, at most so many; `next` is undefined behind the last. */
  readonly people: (
    tenants: 'all' | readonly string[],
    page: { readonly after: PersonPlace | undefined; readonly limit: number },
  ) => { readonly people: readonly Person[]; readonly next: PersonPlace | undefined };
};

type Row = { readonly tenant: number; readonly subject: number; readonly idx: number };

export const peopleReader = (
  { statement }: Pick<ReadConnection, 'statement'>,
  names: { readonly id: (text: string) => number | undefined; readonly text: (id: number) => string },
): PeopleReader => {
  const { actsIn, peopleOf, everybody, lastOfSubject } = PEOPLE_STATEMENTS;
  const personOf = ({ tenant, subject, idx }: Row): Person => {
    const last = statement(lastOfSubject).get(subject);
    const also = last?.['tenant'] === tenant && last['idx'] !== idx ? [Number(last['idx'])] : [];
    return { tenant: names.text(tenant), subject: names.text(subject), leaves: [idx, ...also] };
  };
  /** Numbers of the tenants that have a name here, ascending. */
  const numbersOf = (tenants: readonly string[]): number[] =>
    [...new Set(tenants)]
      .flatMap((tenant) => names.id(searchable(tenant)) ?? [])
      .toSorted((left, right) => left - right);

  return {
    hasActed: (tenants, subject) => {
      const id = names.id(searchable(subject));
      if (id === undefined) return false;
      if (tenants === 'all') return statement(lastOfSubject).get(id) !== undefined;
      return numbersOf(tenants).some((tenant) => statement(actsIn).get(tenant, id) !== undefined);
    },
    people: (tenants, { after = { tenant: -1, subject: -1 }, limit }) => {
      const rows: Row[] = [];
      if (tenants === 'all')
        rows.push(...(statement(everybody).all(after.tenant, after.subject, limit) as unknown as Row[]));
      else
        for (const tenant of numbersOf(tenants)) {
          if (tenant < after.tenant || rows.length >= limit) continue;
          const behind = tenant === after.tenant ? after.subject : -1;
          const page = statement(peopleOf).all(tenant, behind, limit - rows.length);
          rows.push(...(page as unknown as Row[]));
        }
      const last = rows.at(-1);
      return {
        people: rows.map(personOf),
        next:
          last === undefined || rows.length < limit
            ? undefined
            : { tenant: last.tenant, subject: last.subject },
      };
    },
  };
};
