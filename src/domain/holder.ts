/** Who holds something scarce: an object of a kind that acts. */
export type Holder = { readonly kind: string; readonly id: string };

/** One text for a holder; a kind has no slash in it. */
export const holderKey = ({ kind, id }: Holder): string => `${kind}/${id}`;

export const holderOf = (key: string): Holder => {
  const slash = key.indexOf('/');
  return { kind: key.slice(0, slash), id: key.slice(slash + 1) };
};

/**
 * An object that serves one user at a time, such as an external IP: its own stream says who that is. It is claimed before
 * the first event of its user (`ResourceKind.uses`) and given back once nothing of the user is left anywhere.
 */
export type Use = {
  readonly kind: string;
  readonly id: string;
  /** Of the user's document, for whoever is refused. */
  readonly field: string;
  /** Of an object that serves several users at once, each in another part of it. */
  readonly part?: string;
};
