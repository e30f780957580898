import { isIP } from 'node:net';
import { credentials, type ChannelCredentials } from '@grpc/grpc-js';

/** What the library makes a connection with (checked in test/unit/eventstoredb against the installed version). */
type Connector = { readonly connectionOptions: { readonly host: string; servername?: string } };

/**
 * The library tells a server its IP address as its name. RFC 6066 forbids that, and Node warns of it on the console of
 * whoever connects. Certificates are compared with the host all the same.
 */
export const nameNoAddresses = (): void => {
  const secure = Object.getPrototypeOf(credentials.createSsl()) as ChannelCredentials;
  const connector = secure._createSecureConnector;
  secure._createSecureConnector = function (this: ChannelCredentials, ...how) {
    const made = connector.apply(this, how);
    const { connectionOptions } = made as unknown as Connector;
    if (isIP(connectionOptions.servername ?? '') !== 0) delete connectionOptions.servername;
    return made;
  };
};
