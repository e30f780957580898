/**
 * Characters that nobody sees or that turn the text around them: controls, formats, separators of lines, what fonts leave
 * out, and the blank of Braille. Two texts that differ in one of them look alike.
 */
const INVISIBLE = String.raw`\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800`;

/** Also spaces of other widths, which look like the space, or like nothing. */
const NOT_PLAIN = new RegExp(String.raw`[${INVISIBLE}]|(?! )\p{Zs}`, 'u');

/** True when a reader sees every character of the text. */
export const isPlainToSee = (text: string): boolean => !NOT_PLAIN.test(text);

/** All of them but control characters, the controls from U+007F on, and spaces that are not the space. */
const UNSEEN = new RegExp(String.raw`(?![\0-\x1f])[${INVISIBLE}]|(?! )\p{Zs}`, 'gu');

/** True when `withUnseenShown` would change the text. */
export const hasUnseen = (text: string): boolean => text.search(UNSEEN) >= 0;

/** The text with the escape `\u200b` for what nobody sees, in UTF-16 units as JSON has it; ASCII stays as it is. */
export const withUnseenShown = (text: string): string =>
  text.replaceAll(UNSEEN, (character) =>
    Array.from({ length: character.length }, (_, i) => `\\u${hex(character.charCodeAt(i))}`).join(''),
  );

const hex = (unit: number): string => unit.toString(16).padStart(4, '0');
