/** The end of a command's `--help`: these lines as they are typed, without the leading `ledgerctl`. */
export const examples = (...lines: readonly string[]): string =>
  `\nExamples:\n${lines.map((line) => `  ledgerctl ${line}\n`).join('')}`;
