/** Limits that several kinds share. */
export const MAX_INT32 = 2 ** 31 - 1;
/** What a ClusterOrder accepts as `templateID` (OSAC's operator). */
export const TEMPLATE_ID = /^[a-zA-Z_][a-zA-Z0-9._]*$/;
/** Strict SemVer 2.0.0. */
export const SEMVER =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(\+([0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*))?$/;
