/** Whether this process runs in production; `nodeEnv`: the variable NODE_ENV, compared without case and blanks around it. */
export const isProduction = (nodeEnv: string | undefined): boolean =>
  nodeEnv?.trim().toLowerCase() === 'production';
