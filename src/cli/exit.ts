import { ApiError, Unreachable } from './api-client.ts';

/** Exit statuses of `ledgerctl`, the same for every command: what scripts branch on. Printed by `--help` and in docs/command-line.md. */
export const EXIT = { done: 0, failed: 1, usage: 2, notFoundOrConflict: 3, unavailable: 4 } as const;

export const EXIT_HELP = `
Exit status:
  0  done; also an empty list, which is said on stderr
  1  refused or failed: the message says which field or rule; of checks: something is wrong
  2  wrong usage: unknown or invalid option or argument, also when the service refuses it, or an
     unreadable file
  3  not found, name taken, or changed by another client
  4  the service cannot be reached or cannot answer now; try again later
`;

/** A command that ends with a status of its own, after what it had to say on stderr. */
export class CliFailure extends Error {
  override readonly name = 'CliFailure';
  readonly status: number;
  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export const notFound = (message: string): CliFailure => new CliFailure(EXIT.notFoundOrConflict, message);

export const exitStatusOf = (error: unknown): number => {
  if (error instanceof CliFailure) return error.status;
  if (error instanceof Unreachable) return EXIT.unavailable;
  if (!(error instanceof ApiError)) return EXIT.failed;
  if ([404, 409, 412].includes(error.status)) return EXIT.notFoundOrConflict;
  if (isWrongQuestion(error)) return EXIT.usage;
  return [429, 502, 503, 504].includes(error.status) ? EXIT.unavailable : EXIT.failed;
};

/**
 * Whether the service found an option or argument wrong. Bodies of its own surfaces are made of nothing else; what is sent
 * to OSAC's is an object of somebody's file, whose rules are not those of the command line.
 */
const isWrongQuestion = ({ status, method, path, body }: ApiError): boolean => {
  if (status !== 400 || typeof body !== 'object' || body === null) return false;
  const { title, code } = body as { title?: unknown; code?: unknown };
  return OWN_SURFACES.test(path) ? title === WRONG_REQUEST : method === 'GET' && code === INVALID_ARGUMENT;
};

const OWN_SURFACES = /^\/api\/(audit|ledger)\//;
/** Title of problem documents, whose codes are finer. */
const WRONG_REQUEST = 'The request is wrong';
/** gRPC code, as OSAC's bodies have it. */
const INVALID_ARGUMENT = 3;

/** What to do next, where the answer alone does not say it. */
export const hintOf = (error: unknown): string | undefined => {
  if (!(error instanceof ApiError)) return undefined;
  if (error.status === 401 && /key id is not one of its issuer/.test(error.message))
    return 'its key is not the one of this service: set LEDGER_DATA_DIR (or LEDGER_SECRETS_DIR) as the service has it, also for `ledgerctl token`; or give a token of an issuer that it trusts';
  if (error.status === 401)
    return 'give a valid token: --token, LEDGERCTL_TOKEN, or let `ledgerctl token` make one';
  if (/ \/api\/fulfillment\/\S+ answered 400: unknown field/.test(error.message))
    return 'if it is a field for providers, add --private';
  if (error.status === 412) return 'another client changed it: read it again, then repeat';
  return undefined;
};
