import { spawnSync } from 'node:child_process';

const JAVA_AT_LEAST = 17;

/**
 * Home of the Java on PATH.
 *
 * @param who needs it, for the message.
 * @throws Error when there is none, or one that is too old.
 */
export const findJava = (who: string): string => {
  const { stderr, error } = spawnSync('java', ['-XshowSettings:properties', '-version'], {
    encoding: 'utf8',
  });
  const text = error === undefined ? stderr : '';
  const [, home] = /java\.home = (.+)/.exec(text) ?? [];
  const [, version] = /java\.specification\.version = (\d+)/.exec(text) ?? [];
  if (home !== undefined && Number(version) >= JAVA_AT_LEAST) return home.trim();
  throw new Error(
    `${who} needs Java ${JAVA_AT_LEAST} or later; ${version === undefined ? 'there is none here' : `java here is ${version}`}`,
  );
};
