import type { Logger } from '../../src/app/ports.ts';

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

/** Keeps what is logged, for specs about the log. */
export const recordingLogger = (): Logger & { readonly lines: { level: string; fields: object }[] } => {
  const lines: { level: string; fields: object }[] = [];
  const at = (level: string) => (fields: object) => void lines.push({ level, fields });
  const logger = {
    lines,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: () => logger,
  };
  return logger;
};
