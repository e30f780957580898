/** Names that every plain object has already: valid as ids, keys and labels, and callers choose those. */
export const INHERITED_NAMES = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', '__proto__'] as const;
