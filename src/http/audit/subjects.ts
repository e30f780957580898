import { assertUnchanged, eventsOf } from '../../app/audit/event-source.ts';
import { openedText, revealsActor } from '../../app/audit/shown-event.ts';
import type { RecordedEvent } from '../../app/log/event-store.ts';
import { objectAt, own, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isEncrypted } from '../../domain/personal.ts';
import type { Person, PersonPlace } from '../../projections/audit/people.ts';
import { invalid } from '../errors.ts';
import { breathe } from '../ledger/query.ts';
import type { Reach } from './access.ts';
import { reachText } from './reach.ts';
import type { AuditServices } from './services.ts';

/** People who are looked up at once, and of whom a name is looked for at most. */
const PAGE = 25;
const MOST_PEOPLE = 10_000;
const MOST_SAID = 10;

/**
 * The subject that is meant by an id or by a user name, as it is written where the reach allows to see it: names are looked
 * for in what people did there, so that who was erased is found by the id alone. `field`: as the caller calls it.
 * Throws ApiError 400 for somebody who is not there, or for a name that several have, with their ids; 429 when too many
 * look for names.
 */
export const subjectOf = async (
  asked: string,
  reach: Reach,
  {
    field,
    ...services
  }: Pick<AuditServices, 'reader' | 'store' | 'words' | 'searches'> & { readonly field: string },
  signal: AbortSignal,
): Promise<string> => {
  if (services.reader.hasActed(reach.tenants, asked)) return asked;
  const found = await services.searches.run(() => namedSo(asked, reach, services, signal), signal);
  const name = field.replace(/^.*'(.+)'$/, '$1');
  if (found === undefined)
    throw invalid(`${field}: too many people are ${reachText(reach)} to look for a name: give the id`, name);
  const [only, ...others] = new Map(found.map((person) => [person.subject, person])).values();
  if (only === undefined)
    throw invalid(
      `${field}: no subject has this id or user name ${reachText(reach)}. Names are exact; ` +
        'an erased person is found by the id alone (`actor.subject` of the events, `ledgerctl audit events -o wide`)',
      name,
    );
  if (others.length === 0) return only.subject;
  const all = [only, ...others];
  const ids = all.slice(0, MOST_SAID).map(({ subject, tenant }) => `${subject} (${tenant || 'provider'})`);
  const more = all.length > MOST_SAID ? ` and ${all.length - MOST_SAID} more` : '';
  throw invalid(
    `${field}: ${all.length} people have this user name; give the id of one: ${ids.join(', ')}${more}`,
    name,
  );
};

/** Undefined: there are more people than are looked at. */
const namedSo = async (
  name: string,
  reach: Reach,
  services: Pick<AuditServices, 'reader' | 'store' | 'words'>,
  signal: AbortSignal,
): Promise<readonly Person[] | undefined> => {
  const found: Person[] = [];
  let looked = 0;
  for (let after: PersonPlace | undefined; ; ) {
    const { people, next } = services.reader.people(reach.tenants, { after, limit: PAGE });
    for (const person of people) {
      if (await isCalled(name, person, reach, services, signal)) found.push(person);
      // Two events are read and opened by then, about a millisecond.
      await breathe();
    }
    looked += people.length;
    if (next === undefined) return found;
    if (looked >= MOST_PEOPLE) return undefined;
    after = next;
  }
};

/** Whether an event of a person tells this caller that name. Throws ChangedEvent when it is not the one that was recorded. */
const isCalled = async (
  name: string,
  { leaves }: Person,
  reach: Reach,
  { reader, store, words }: Pick<AuditServices, 'reader' | 'store' | 'words'>,
  signal: AbortSignal,
): Promise<boolean> => {
  for (const index of leaves) {
    const leaf = reader.leaf(index);
    if (leaf === undefined) continue;
    const [event] = await eventsOf(store, [leaf], signal);
    if (event === undefined || userNameIn(event, reach, words) !== name) continue;
    assertUnchanged(leaf, event);
    return true;
  }
  return false;
};

/** The user name that an event tells this caller; undefined where it tells none (any more). */
const userNameIn = (
  { metadata }: RecordedEvent,
  { audience }: Pick<Reach, 'audience'>,
  { open }: Pick<AuditServices['words'], 'open'>,
): string | undefined => {
  const personal = own(objectAt(metadata, 'actor'), 'personal');
  if (!isEncrypted(personal) || !revealsActor(metadata, audience)) return undefined;
  const text = openedText(personal, open);
  return text === undefined ? undefined : stringAt(JSON.parse(text) as JsonObject, 'userName');
};
