import { InvalidArgumentError, Option, type Command } from 'commander';
import type { AuditDiff, AuditEvent, AuditEvents, Change } from '../../http/audit/answers.ts';
import { kinds } from '../resources/kinds.ts';
import { AUDIT, eventTable } from '../audit/event-table.ts';
import { queryText } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { printable } from '../output.ts';
import { pathOf } from './hub-paths.ts';

export { AUDIT } from '../audit/event-table.ts';

export const OUTCOMES = ['accepted', 'rejected', 'denied', 'unauthenticated'];

type EventOptions = {
  readonly tenant: string[];
  readonly type: string[];
  readonly subject?: string;
  readonly kind?: string;
  readonly id?: string;
  readonly outcome?: string;
  readonly from?: string;
  readonly to?: string;
  readonly newestFirst: boolean;
  readonly limit: string;
  readonly output: 'table' | 'wide' | 'json';
  readonly json: boolean;
};

/** `ledgerctl audit events|show|diff`: who did what, and what things were like. */
export const addAuditEventCommands = (audit: Command, connection: Connection): void => {
  addEvents(audit, connection);
  addShow(audit, connection);
  addDiff(audit, connection);
};

const addEvents = (audit: Command, { client, io }: Connection): void => {
  audit
    .command('events')
    .description('list events, oldest first (--newest-first); for one object: --kind and --id')
    .option('--tenant <name...>', 'only of these tenants', [])
    .option('--subject <who>', 'only what this subject did: its id, or the exact user name')
    .option('--kind <kind>', 'only about this kind, for example cluster')
    .option('--id <id>', 'with --kind: everything about this object, also what was refused about it')
    .option('--type <type...>', 'only events of these types', [])
    .addOption(new Option('--outcome <outcome>', 'only calls that ended so').choices(OUTCOMES))
    .option('--from <time>', 'recorded at that time or later, for example 2026-11-01T00:00:00Z')
    .option('--to <time>', 'recorded before that time')
    .option('--newest-first', 'the newest events, in the order from the newest to the oldest', false)
    .option('--limit <n>', 'at most so many', '100')
    .addOption(
      new Option('-o, --output <form>', 'wide adds the ids of subjects; json is one object per line')
        .choices(['table', 'wide', 'json'])
        .default('table'),
    )
    .option('--json', 'the same as -o json', false)
    .addHelpText(
      'after',
      examples(
        'audit events --subject alice -o wide',
        'audit events --tenant acme --from 2026-11-01T00:00:00Z',
        'audit events --kind cluster --id readme-1',
        'audit events --newest-first --limit 20',
        'audit events --outcome denied --json',
      ),
    )
    .action(async (options: EventOptions) => {
      const most = /^[1-9]\d{0,8}$/.test(options.limit) ? Number(options.limit) : Number.NaN;
      if (Number.isNaN(most)) throw new InvalidArgumentError('--limit must be a whole number from 1');
      const api = await client();
      const query = queryOf(options);
      const form = options.json ? 'json' : options.output;
      const rows: AuditEvent[] = [];
      let [seen, more] = [0, false];
      for (let cursor: string | undefined; ; ) {
        query.set('limit', String(Math.min(500, most - seen)));
        if (cursor !== undefined) query.set('cursor', cursor);
        const page = await api.get<AuditEvents>(`${AUDIT}/events?${query.toString()}`);
        for (const event of page.items)
          if (form === 'json') io.out(`${JSON.stringify(event)}\n`);
          else rows.push(event);
        seen += page.items.length;
        // Asked for by name, the next pages go by the id, which does not change meanwhile.
        if (page.subject !== undefined) query.set('subject', page.subject);
        cursor = page.next_cursor;
        more = cursor !== undefined;
        if (!more || seen >= most) break;
      }
      if (rows.length > 0) io.out(`${eventTable(rows, { wide: form === 'wide' })}\n`);
      const subject = query.get('subject');
      if (subject !== null && subject !== options.subject)
        io.err(`${printable(options.subject ?? '')} is the subject ${subject}\n`);
      if (seen === 0) io.err(`no such events${ofObject(options)}\n`);
      else if (more) io.err(`--limit ${options.limit} reached; there is more\n`);
    });
};

/** An id that is misspelt reads as if nothing had happened: nobody but who asked can know. */
const ofObject = ({ kind, id }: EventOptions): string =>
  kind === undefined || id === undefined
    ? ''
    : `: if there should be some, look at the id (ledgerctl audit show ${printable(`${kind} ${id}`)})`;

const queryOf = ({ tenant, type, newestFirst, ...options }: EventOptions): URLSearchParams => {
  const query = new URLSearchParams();
  for (const name of ['subject', 'kind', 'id', 'outcome', 'from', 'to'] as const) {
    const value = options[name];
    if (value !== undefined) query.set(name, value);
  }
  if (newestFirst) query.set('order', 'desc');
  for (const name of tenant) query.append('tenant', name);
  for (const name of type) query.append('type', name);
  return query;
};

const addShow = (audit: Command, { client, io }: Connection): void => {
  audit
    .command('show')
    .description('one event, or with two arguments an object as it was')
    .argument('<what>', 'id of an event, or <stream>@<revision>; or the kind of an object')
    .argument('[id]', 'id of the object')
    .option('--as-of <moment>', 'time or position of an object (default: now)')
    .option('--json', 'as JSON, which it is anyway', false)
    .addHelpText(
      'after',
      examples('audit show cluster-readme-1@0', 'audit show cluster readme-1 --as-of 2026-11-01T00:00:00Z'),
    )
    .action(async (what: string, id: string | undefined, { asOf }: { asOf?: string }) => {
      if (id === undefined && asOf !== undefined)
        throw new InvalidArgumentError('--as-of needs an object: give its kind and its id');
      if (id === undefined && isKind(what))
        throw new InvalidArgumentError(`"${what}" is a kind: give the id of the object, too`);
      const path =
        id === undefined
          ? `${AUDIT}/events/${encodeURIComponent(what)}`
          : `${pathOf(`${AUDIT}/resources`, what, encodeURIComponent(id))}${queryText({ as_of: asOf })}`;
      io.out(`${printable(JSON.stringify(await (await client()).get(path), null, 2))}\n`);
    });
};

/** No event has such an id. */
const isKind = (text: string): boolean =>
  kinds.some(({ kind, collection }) => [kind, collection].includes(text));

const addDiff = (audit: Command, { client, io }: Connection): void => {
  audit
    .command('diff')
    .description('changes of an object between two moments')
    .argument('<kind>', 'for example cluster')
    .argument('<id>', 'id of the object')
    .requiredOption('--from <moment>', 'time or position')
    .option('--to <moment>', 'time or position (default: now)')
    .option('--json', 'print it as JSON', false)
    .addHelpText('after', examples('audit diff cluster readme-1 --from 2026-11-01T00:00:00Z'))
    .action(async (kind: string, id: string, options: { from: string; to?: string; json: boolean }) => {
      const query = queryText({ from: options.from, to: options.to });
      const path = `${AUDIT}/resources/${encodeURIComponent(kind)}/${encodeURIComponent(id)}/diff${query}`;
      const answer = await (await client()).get<AuditDiff>(path);
      if (options.json) io.out(`${JSON.stringify(answer, null, 2)}\n`);
      else if (answer.changes.length === 0) io.err('nothing changed\n');
      else io.out(answer.changes.map(changeText).join(''));
    });
};

const changeText = ({ path, op, before, after }: Change): string => {
  const [was, is] = [before, after].map((value) => JSON.stringify(value));
  const text =
    op === 'add' ? `+ ${path}: ${is}` : op === 'remove' ? `- ${path}: ${was}` : `~ ${path}: ${was} -> ${is}`;
  return `${printable(text)}\n`;
};
