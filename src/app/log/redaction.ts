/**
 * pino `redact` paths: the second net behind the rule that secrets never reach a logger at all. `*` matches one level.
 */
export const LOG_REDACT_PATHS: readonly string[] = [
  'authorization',
  'req.headers.authorization',
  'req.headers.cookie',
  'req.headers["idempotency-key"]',
  'headers.authorization',
  'headers.cookie',
  ...['token', 'password', 'secret', 'kubeconfig', 'pull_secret', 'pullSecret', 'privateKey'].flatMap(
    (name) => [name, `*.${name}`],
  ),
  'spec.pull_secret',
  'spec.kubeconfig',
  '*.spec.pull_secret',
  '*.spec.kubeconfig',
  'object.spec.pull_secret',
  'object.spec.kubeconfig',
];

export const LOG_REDACTED = '[redacted]';
