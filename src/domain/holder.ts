/** Who holds something scarce: an object of a kind that acts. */
export type Holder = { readonly kind: string; readonly id: string };

/** One text for a holder; a kind has no slash in it. */
export const holderKey = ({ kind, id }: Holder): string => `${kind}/${id}`;

export const holderOf = (key: string): Holder => {
  const slash = key.indexOf('/');
  return { kind: key.slice(0, slash), id: key.slice(slash + 1) };
};
