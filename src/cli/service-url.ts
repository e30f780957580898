const DEFAULT_HOST = '127.0.0.1:8001';
export const DEFAULT_URL = `http://${DEFAULT_HOST}`;

/** Hosts that stand for every interface: nobody connects to those. */
const LOOPBACK: { readonly [host: string]: string } = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' };

/**
 * Where the service is found that listens at `address` (`LEDGER_HTTP_ADDRESS`, `host:port`). The default where none is
 * set, or where it names no port. `tls`: the service has a certificate.
 */
export const urlOfAddress = (address: string | undefined, tls = false): string => {
  const [, host = '', port = '0'] = /^(.+):(\d{1,5})$/.exec(address ?? '') ?? [];
  const found = Number(port) === 0 ? DEFAULT_HOST : `${LOOPBACK[host] ?? host}:${port}`;
  return `${tls ? 'https' : 'http'}://${found}`;
};
