/**
 * Clients of the provider's issuer whose own accounts are provider admins, as OSAC's realm names them. An issuer calls the
 * own account of a client `service-account-<client>`; users of a tenant must not be called so.
 */
export const PROVIDER_CLIENTS: readonly string[] = ['osac-admin', 'osac-controller'];

export const ownAccountName = (client: string): string => `service-account-${client}`;

/** True for every spelling that a directory may take for the name of such an account. */
export const isProviderAccountName = (name: string): boolean => PROVIDER_ACCOUNT_NAMES.includes(folded(name));

const PROVIDER_ACCOUNT_NAMES = PROVIDER_CLIENTS.map(ownAccountName);

const folded = (name: string): string =>
  name
    .normalize('NFKD')
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cc}\p{M}]/gu, '')
    .replaceAll(/\p{Pd}/gu, '-')
    .trim()
    .toLowerCase()
    // Turkish: no decomposition leads from it to the letter that it looks like.
    .replaceAll('ı', 'i');
