export type Line = {
  readonly text: string;
  /** Milliseconds since the first line. */
  readonly at: number;
};

const COLUMNS = 118;
const ROWS = 26;
const LINE_PX = 17;
const WIDTH_PX = 880;
const MARGIN_PX = 14;
/** How long the end stays before the recording starts over. */
const END_MS = 5_000;
/** Waiting is shortened to this. */
const GAP_MS = 1_200;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const colourOf = (text: string): string =>
  text.startsWith('──') || text.startsWith('$')
    ? '#f0f0f0'
    : text.trimStart().startsWith('✓')
      ? '#7fd88f'
      : '#b8c0cc';

/** An SVG that shows lines as a terminal did: the newest at the bottom, each at its time, over and over. */
export const recordingOf = (lines: readonly Line[]): string => {
  const times: number[] = [];
  for (const [i, { at }] of lines.entries()) {
    const gap = at - (lines[i - 1]?.at ?? 0);
    times.push((times[i - 1] ?? 0) + Math.min(gap, GAP_MS));
  }
  const total = (times.at(-1) ?? 0) + END_MS;
  const frames = times.map(
    (time, i) =>
      `${((100 * time) / total).toFixed(2)}% { transform: translateY(${(ROWS - 1 - i) * LINE_PX}px) }`,
  );
  const last = (ROWS - lines.length) * LINE_PX;
  const height = ROWS * LINE_PX + 2 * MARGIN_PX;
  const texts = lines.map(({ text }, i) => {
    const shown = text.length > COLUMNS ? `${text.slice(0, COLUMNS - 1)}…` : text;
    return `<text x="${MARGIN_PX}" y="${(i + 1) * LINE_PX}" fill="${colourOf(text)}" xml:space="preserve">${escaped(shown)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH_PX} ${height}" width="${WIDTH_PX}" height="${height}">
<style>
text { font: 12px ui-monospace, Menlo, Consolas, monospace }
g { animation: scroll ${(total / 1_000).toFixed(1)}s step-end infinite; transform: translateY(${last}px) }
@keyframes scroll {
${frames.join('\n')}
100% { transform: translateY(${last}px) }
}
@media (prefers-reduced-motion: reduce) { g { animation: none } }
</style>
<rect width="100%" height="100%" rx="8" fill="#1b1f27"/>
<svg x="0" y="${MARGIN_PX}" width="${WIDTH_PX}" height="${ROWS * LINE_PX + MARGIN_PX / 2}">
<g>
${texts.join('\n')}
</g>
</svg>
</svg>
`;
};
