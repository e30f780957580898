import { InvalidArgumentError, Option, type Command } from 'commander';
import type { ApiClient } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { printable, table } from '../output.ts';

export const AUDIT = '/api/audit/v1';

/** How a call ended. */
export const OUTCOMES = ['accepted', 'rejected', 'denied', 'unauthenticated'];

/** An event as `/api/audit/v1` shows it. */
export type AuditEvent = {
  readonly id: string;
  readonly event: string;
  readonly type: string;
  readonly tenant: string;
  readonly kind?: string;
  readonly resource_id?: string;
  readonly outcome: string;
  readonly occurred_at: string;
  readonly recorded_at: string;
  readonly command?: string;
  readonly actor: {
    readonly subject: string;
    readonly personal?: { readonly user_name?: string; readonly erased?: true };
  };
  readonly data: { readonly [name: string]: unknown };
};

type Page = { readonly items: readonly AuditEvent[]; readonly next_cursor?: string };

type EventOptions = {
  readonly tenant: string[];
  readonly type: string[];
  readonly subject?: string;
  readonly kind?: string;
  readonly id?: string;
  readonly outcome?: string;
  readonly from?: string;
  readonly to?: string;
  readonly limit: string;
  readonly json: boolean;
};

type Change = {
  readonly path: string;
  readonly op: 'add' | 'remove' | 'replace';
  readonly before?: unknown;
  readonly after?: unknown;
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
    .description('who did what, oldest first; of one object: --kind and --id')
    .option('--tenant <name...>', 'only of these tenants', [])
    .option('--subject <id>', 'only what this subject did')
    .option('--kind <kind>', 'only about this kind, for example cluster')
    .option('--id <id>', 'with --kind: everything about this object, also what was refused about it')
    .option('--type <type...>', 'only events of these types', [])
    .addOption(new Option('--outcome <outcome>', 'only calls that ended so').choices(OUTCOMES))
    .option('--from <time>', 'recorded from then on, for example 2026-11-01T00:00:00Z')
    .option('--to <time>', 'recorded until then')
    .option('--limit <n>', 'at most so many', '100')
    .option('--json', 'one JSON object per line', false)
    .addHelpText(
      'after',
      examples(
        'audit events --tenant acme --from 2026-11-01T00:00:00Z',
        'audit events --kind cluster --id readme-1',
        'audit events --outcome denied --json',
      ),
    )
    .action(async (options: EventOptions) => {
      const most = /^[1-9]\d{0,8}$/.test(options.limit) ? Number(options.limit) : Number.NaN;
      if (Number.isNaN(most)) throw new InvalidArgumentError('--limit must be a whole number from 1');
      const api = await client();
      const query = queryOf(options);
      const rows: AuditEvent[] = [];
      let [seen, more] = [0, false];
      for (let cursor: string | undefined; ; ) {
        query.set('limit', String(Math.min(500, most - seen)));
        if (cursor !== undefined) query.set('cursor', cursor);
        const page = await api.get<Page>(`${AUDIT}/events?${query.toString()}`);
        for (const event of page.items)
          if (options.json) io.out(`${JSON.stringify(event)}\n`);
          else rows.push(event);
        seen += page.items.length;
        cursor = page.next_cursor;
        more = cursor !== undefined;
        if (!more || seen >= most) break;
      }
      if (!options.json && rows.length > 0) io.out(`${eventTable(rows, await refusedNames(api, rows))}\n`);
      if (seen === 0) io.err('no such events\n');
      else if (more) io.err(`--limit ${options.limit} reached; there is more\n`);
    });
};

const queryOf = ({ tenant, type, ...options }: EventOptions): URLSearchParams => {
  const query = new URLSearchParams();
  for (const name of ['subject', 'kind', 'id', 'outcome', 'from', 'to'] as const) {
    const value = options[name];
    if (value !== undefined) query.set(name, value);
  }
  for (const name of tenant) query.append('tenant', name);
  for (const name of type) query.append('type', name);
  return query;
};

/** People that are asked for by one table at most: each is a look that is recorded. */
const MOST_ASKED = 5;

/** Refusals hold no names: of whom they are is told by something else that the same person did. */
const refusedNames = async (
  api: ApiClient,
  events: readonly AuditEvent[],
): Promise<readonly AuditEvent[]> => {
  const named = new Set(
    events.filter(({ actor }) => actor.personal !== undefined).map(({ actor }) => actor.subject),
  );
  const nameless = events.filter(({ type, actor }) => type === 'RequestRefused' && !named.has(actor.subject));
  const subjects = [...new Set(nameless.map(({ actor }) => actor.subject))].filter((id) => id !== '');
  const found: AuditEvent[] = [];
  for (const subject of subjects.slice(0, MOST_ASKED)) {
    const query = new URLSearchParams({ subject, outcome: 'accepted', limit: '1' }).toString();
    found.push(...(await api.get<Page>(`${AUDIT}/events?${query}`)).items);
  }
  return found;
};

const eventTable = (events: readonly AuditEvent[], alsoNaming: readonly AuditEvent[]): string => {
  const whoOf = namesIn([...alsoNaming, ...events]);
  return table(
    ['recorded', 'tenant', 'who', 'type', 'about', 'outcome', 'event', 'why'],
    events.map((event) => [
      event.recorded_at,
      event.tenant,
      printable(whoOf(event)),
      event.type,
      event.kind === undefined ? '' : printable(`${event.kind}/${event.resource_id ?? ''}`),
      event.outcome,
      printable(event.event),
      printable(whyOf(event)),
    ]),
  );
};

/** Begins with so much of the subject's id where two people of a table have the same name. */
const SHORT = 8;

/**
 * One spelling for one person in a whole table: the user name where any event of it tells that, else the subject's id. Not every
 * event tells the name: those of the provider's people do not tell tenants. What was recorded before an erasure has no name any
 * more, though the person may have come back and later events tell one.
 */
const namesIn = (events: readonly AuditEvent[]): ((event: AuditEvent) => string) => {
  const names = new Map<string, string>();
  const erasedTo = new Map<string, string>();
  for (const { actor, recorded_at: at } of events) {
    const name = actor.personal?.user_name;
    if (name !== undefined) names.set(actor.subject, name);
    if (actor.personal?.erased === true && at > (erasedTo.get(actor.subject) ?? ''))
      erasedTo.set(actor.subject, at);
  }
  const shared = new Set([...names.values()].filter((name, i, all) => all.indexOf(name) !== i));
  return ({ actor: { subject, personal }, recorded_at: at }) => {
    if (personal?.user_name === undefined && at <= (erasedTo.get(subject) ?? ''))
      return `${subject} (erased)`;
    const name = names.get(subject);
    if (name === undefined) return subject;
    return shared.has(name) ? `${name} (${subject.slice(0, SHORT)})` : name;
  };
};

/** Of what was refused: which call, the stable code, and what the caller was told. */
const whyOf = ({ type, data }: AuditEvent): string => {
  const text = (name: string): string => {
    const value = Object.hasOwn(data, name) ? data[name] : undefined;
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  };
  if (type === 'RefusalsSuppressed')
    return `${text('count')} more were refused, ${text('since')} to ${text('until')}`;
  if (type !== 'RequestRefused') return '';
  // Of somebody unknown only words that are the same for everybody are kept; of an erased person the class is left.
  const [command, code, message, told, error] = ['command', 'code', 'message', 'told', 'error'].map(text);
  const why = message || told || (error === code ? '' : error);
  return `${command}: ${code}${why === '' ? '' : `, ${why}`}`.replaceAll('\n', ' ');
};

const addShow = (audit: Command, { client, io }: Connection): void => {
  audit
    .command('show')
    .description('one event, or with two arguments an object as it was')
    .argument('<what>', 'id of an event, or <stream>@<revision>; or the kind of an object')
    .argument('[id]', 'id of the object')
    .option('--as-of <moment>', 'of an object: time or position (default: now)')
    .option('--json', 'as JSON, which it is anyway', false)
    .addHelpText(
      'after',
      examples('audit show cluster-readme-1@0', 'audit show cluster readme-1 --as-of 2026-11-01T00:00:00Z'),
    )
    .action(async (what: string, id: string | undefined, { asOf }: { asOf?: string }) => {
      if (id === undefined && asOf !== undefined)
        throw new InvalidArgumentError('--as-of needs an object: give its kind and its id');
      const query = asOf === undefined ? '' : `?${new URLSearchParams({ as_of: asOf }).toString()}`;
      const path =
        id === undefined
          ? `${AUDIT}/events/${encodeURIComponent(what)}`
          : `${AUDIT}/resources/${encodeURIComponent(what)}/${encodeURIComponent(id)}${query}`;
      io.out(`${printable(JSON.stringify(await (await client()).get(path), null, 2))}\n`);
    });
};

const addDiff = (audit: Command, { client, io }: Connection): void => {
  audit
    .command('diff')
    .description('what changed on an object between two moments')
    .argument('<kind>', 'for example cluster')
    .argument('<id>', 'id of the object')
    .requiredOption('--from <moment>', 'time or position')
    .option('--to <moment>', 'time or position (default: now)')
    .option('--json', 'print it as JSON', false)
    .addHelpText('after', examples('audit diff cluster readme-1 --from 2026-11-01T00:00:00Z'))
    .action(async (kind: string, id: string, options: { from: string; to?: string; json: boolean }) => {
      const query = new URLSearchParams({
        from: options.from,
        ...(options.to === undefined ? {} : { to: options.to }),
      });
      const path = `${AUDIT}/resources/${encodeURIComponent(kind)}/${encodeURIComponent(id)}/diff?${query.toString()}`;
      const answer = await (await client()).get<{ readonly changes: readonly Change[] }>(path);
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
