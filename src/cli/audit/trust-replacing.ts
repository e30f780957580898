import { collectFindings, findingText } from '../../app/audit/bundle/findings.ts';
import { checkHead, type HeadOptions } from '../../app/audit/bundle/head-check.ts';
import type { Trust } from '../../app/audit/merkle/key-chain.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { printable } from '../output.ts';

/**
 * Whether what a service shows may replace what an auditor holds of the same log: the file is what shows that a history is
 * another one. Says in words what became of what was held.
 *
 * @throws CliFailure when the one does not continue the other.
 */
export const assertReplaces = async (
  held: Trust,
  shown: Trust,
  file: string,
  between: NonNullable<HeadOptions['between']>,
): Promise<string> => {
  if (held.origin !== shown.origin) return `it held a pin of another log, ${printable(held.origin)}`;
  const findings = collectFindings();
  if (shown.pin === undefined)
    findings.add({ code: 'checkpoint', message: 'the service shows no signed head' });
  else {
    const { checkpoint, pin, pinSize } = await checkHead(
      shown.pin,
      { trust: held, shipped: shown, between },
      findings,
    );
    if (pin === 'continued') return `its pin is continued (size ${pinSize})`;
    if (pin === 'leads to')
      findings.add({
        code: 'pin',
        message: `the head of size ${checkpoint?.size} that the service shows is older than your pin of size ${pinSize}`,
      });
  }
  if (findings.count() === 0) return 'it had no pin';
  const why = findings.list().map((finding) => printable(findingText(finding)));
  throw new CliFailure(
    EXIT.failed,
    `${[...why, `${file} is kept, because it shows the difference; to begin again, name another file or move it away`].join('\n')}`,
  );
};
