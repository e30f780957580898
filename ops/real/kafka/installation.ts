import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findJava } from '../java.ts';
import { cacheFolder } from '../go-program.ts';

/** Where Apache Kafka's libraries are and which Java runs them. */
export type KafkaInstallation = {
  /** The program `java`. */
  readonly java: string;
  /** Class path of the broker. */
  readonly classPath: string;
};

const POM = join(import.meta.dirname, 'pom.xml');
const INSTALL_MS = 300_000;

/**
 * Apache Kafka as Maven has it: from the cache, or installed now (about 120 MB, 10 to 30 s). Another version in pom.xml
 * is another folder.
 *
 * @param say told what is about to take long.
 * @throws Error with what is missing on this machine: whoever needs it must not go on without.
 */
export const kafkaInstallation = (say: (line: string) => void = () => undefined): KafkaInstallation => {
  const java = join(findJava('Apache Kafka'), 'bin', 'java');
  const key = createHash('sha256').update(readFileSync(POM)).digest('hex').slice(0, 16);
  const folder = join(cacheFolder(), `kafka-${key}`);
  const lib = join(folder, 'lib');
  const classPath = `${lib}/*`;
  // Written last, so that an installation that broke off is made again.
  const complete = join(folder, 'complete');
  if (existsSync(complete)) return { java, classPath };
  say('installing Apache Kafka with Maven; this takes about 20 seconds, once per machine');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const argv = ['-q', '-B', '-ntp', '-f', POM, 'dependency:copy-dependencies'];
  const done = spawnSync('mvn', [...argv, `-DoutputDirectory=${lib}`, '-DincludeScope=runtime'], {
    encoding: 'utf8',
    cwd: folder,
    timeout: INSTALL_MS,
  });
  if (done.status !== 0) {
    const why = done.error?.message ?? `${done.stdout}${done.stderr}`.trim().split('\n').slice(-3).join('; ');
    throw new Error(`Apache Kafka cannot be installed: mvn ${argv.join(' ')}: ${why}`);
  }
  writeFileSync(complete, '');
  return { java, classPath };
};
