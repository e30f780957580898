import { pino, type DestinationStream } from 'pino';
import { LOG_REDACTED, LOG_REDACT_PATHS } from '../app/log/redaction.ts';

/** The service's logger: one JSON object a line, to stdout unless told otherwise, secrets redacted. */
export const createLogger = (level: string, destination?: DestinationStream) => {
  const options = {
    level,
    base: { pid: process.pid },
    // As people and tools for logs read them.
    formatters: { level: (level: string) => ({ level }) },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: [...LOG_REDACT_PATHS], censor: LOG_REDACTED },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
};
