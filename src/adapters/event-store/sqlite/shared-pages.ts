import type { EventFilter } from '../../../app/log/event-store.ts';
import type { Page } from '../shared/paged-subscription.ts';

/** `bytes`: of the texts of its events, near enough. */
export type SizedPage = Page & { readonly bytes: number };
type ReadPage = (after: number) => Page;

/**
 * The end of a log, read and parsed once for all who follow it in one thread. Position alone decides who takes part: one
 * that is behind what is kept reads for itself.
 */
export type SharedPages = {
  /** `all` reads every event, `own` those of the filter. */
  readonly reader: (
    all: (after: number) => SizedPage,
    own: ReadPage,
    filter: EventFilter | undefined,
  ) => ReadPage;
};

/** Bytes of event texts that are kept for those who come later. */
const MOST_BYTES = 1024 * 1024;
const MOST_PAGES = 500;

export const createSharedPages = (): SharedPages => {
  /** Each begins where the one before it ends. */
  let pages: SizedPage[] = [];
  let bytes = 0;
  /** Everything behind `floor` and up to `head` is here. */
  let floor = Infinity;
  let head = Infinity;

  const keep = (page: SizedPage): void => {
    pages.push(page);
    bytes += page.bytes;
    head = page.considered;
    while (pages.length > 1 && (bytes > MOST_BYTES || pages.length > MOST_PAGES)) {
      const [oldest] = pages.splice(0, 1);
      bytes -= oldest?.bytes ?? 0;
      floor = oldest?.considered ?? floor;
    }
  };
  const beginAt = (end: number): void => {
    pages = [];
    bytes = 0;
    floor = end;
    head = end;
  };

  return {
    reader: (all, own, filter) => {
      const wants = wanted(filter);
      const alone = (after: number): Page => {
        const page = own(after);
        // Whoever reaches the end first, or finds nobody near it, begins there.
        if (page.atEnd && (head === Infinity || page.considered > head)) beginAt(page.considered);
        return page;
      };
      return (after) => {
        if (after < floor || after > head) return alone(after);
        const isFresh = after === head;
        if (isFresh) {
          let page: SizedPage;
          try {
            page = all(after);
          } catch {
            return own(after); // what is damaged may be nothing that this one wants
          }
          if (page.considered === after) return page;
          keep(page);
        }
        const [first, ...more] = pages.filter(({ considered }) => considered > after);
        if (first === undefined) return alone(after);
        const { considered, atEnd, last } = more.at(-1) ?? first;
        const events = [first, ...more].flatMap((page) =>
          page.events.filter((event) => Number(event.position) > after && wants(event)),
        );
        // What was the end when others read it may be so no longer.
        return { events, considered, atEnd: isFresh && atEnd, last };
      };
    },
  };
};

const wanted = (filter: EventFilter | undefined): ((event: Page['events'][number]) => boolean) => {
  if (filter === undefined || 'alsoStoreRecords' in filter) return () => true;
  if ('typePrefixes' in filter)
    return ({ type }) => filter.typePrefixes.some((prefix) => type.startsWith(prefix));
  return ({ stream }) => filter.streamPrefixes.some((prefix) => stream.startsWith(prefix));
};
