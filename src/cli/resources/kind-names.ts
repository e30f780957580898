import { InvalidArgumentError } from 'commander';
import type { KindFacts } from './kinds.ts';

/** How a kind is called on the command line; everything is derived from its declaration. */
export type NamedKind = {
  readonly kind: KindFacts;
  /** `cluster_template`: how answers of the command line name it. */
  readonly singular: string;
  /** `ct`, where it belongs to this kind alone. */
  readonly alias?: string;
};

export type KindNames = {
  readonly all: readonly NamedKind[];
  /**
   * The kind that a text means: collection, singular or plural (with `_`, `-`, spaces, in camel case), initials, or the
   * beginning of one name only. Throws InvalidArgumentError with what there is.
   */
  find(text: string): NamedKind;
};

export const createKindNames = (kinds: readonly KindFacts[]): KindNames => {
  const initials = kinds.map((kind) => initialsOf(wordsOf(kind)));
  const all = kinds.map((kind, i): NamedKind => {
    const alias = initials[i] ?? '';
    const alone = alias.length > 1 && initials.filter((other) => other === alias).length === 1;
    return { kind, singular: wordsOf(kind).join('_'), ...(alone ? { alias } : {}) };
  });
  const spellings = all.map(({ kind, singular }) =>
    [singular, kind.kind, kind.collection, kind.message, kind.service, kind.words].map(plain),
  );
  return {
    all,
    find: (text) => {
      const wanted = plain(text);
      const exact = all.find((_, i) => spellings[i]?.includes(wanted) === true);
      if (exact !== undefined) return exact;
      const short = all.find(({ alias }) => alias === wanted);
      if (short !== undefined) return short;
      const begun =
        wanted.length < SHORTEST_BEGINNING
          ? []
          : all.filter((_, i) => spellings[i]?.some((name) => name.startsWith(wanted)) === true);
      const [only, ...others] = begun;
      if (only !== undefined && others.length === 0) return only;
      const meant = begun.length > 1 ? begun : all;
      throw new InvalidArgumentError(
        `${begun.length > 1 ? `"${text}" may mean several kinds` : `unknown kind "${text}"`}: ` +
          meant.map(({ singular }) => singular).join(', '),
      );
    },
  };
};

const SHORTEST_BEGINNING = 3;

/** Words of `clusterTemplate`. */
const wordsOf = ({ kind }: KindFacts): string[] =>
  kind
    .replaceAll(/([A-Z])/g, ' $1')
    .toLowerCase()
    .split(' ');

const initialsOf = (words: readonly string[]): string => words.map((word) => word[0] ?? '').join('');

const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_ ]/g, '');
