import { fnv1a32 } from '../hash.ts';

/** Names that the service derives when the caller sends none (OSAC). */

/** Host types and templates: the part of the id after the last dot, `_` as `-`. Undefined without an id. */
export const nameFromId = (id: string): string | undefined => {
  const last = id.slice(id.lastIndexOf('.') + 1).replaceAll('_', '-');
  return last === '' ? undefined : last;
};

const MAX_NAME = 63;
const SUFFIX = 5; // a hyphen and four hex digits

/** Cluster versions: the version as a DNS label and the last four hex digits of its FNV-32a. */
export const nameFromVersion = (version: string): string => {
  const label = version
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_NAME - SUFFIX)
    .replaceAll(/^-+|-+$/g, '');
  const digits = fnv1a32(version).toString(16).padStart(8, '0').slice(-4);
  return `${label}-${digits}`;
};
