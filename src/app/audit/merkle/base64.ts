/** Bytes of standard base64 text with padding; undefined for any other spelling of them, which Node would accept. */
export const fromBase64 = (text: string): Buffer | undefined => {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
};
