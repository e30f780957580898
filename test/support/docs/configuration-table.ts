import type { Setting } from '../../../src/config.ts';

/** The table of docs/configuration.md, made from the settings so that the two cannot differ. */
export const configurationTable = (settings: readonly Setting[]): string =>
  [
    '| setting | default | meaning |',
    '|---|---|---|',
    ...settings.map(
      ({ variable, default: fallback, meaning }) =>
        `| \`${variable}\` | ${fallback === '' ? 'empty' : `\`${fallback}\``} | ${meaning} |`,
    ),
  ].join('\n');
