const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/;

/** Whether what is sent to this host, of a URL or an address, stays on this machine: only there it may go in clear. */
export const isLoopback = (hostname: string): boolean => LOOPBACK.test(hostname);
