import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { goProgram, type GoProgram } from '../go-program.ts';

const SOURCES = import.meta.dirname;

/**
 * etcd, kube-apiserver and controllers in one program. A first build takes about five minutes of both cores of a small
 * machine, and gets most of its modules before that.
 *
 * @param say told what is about to take long.
 */
export const kubeBinary = (say: (line: string) => void = () => undefined): GoProgram =>
  goProgram(
    {
      sources: SOURCES,
      name: 'kube-apiserver',
      program: 'hub',
      flags: linkFlags(),
      takes: 'building etcd, kube-apiserver and controllers; this takes about five minutes, once per machine',
    },
    say,
  );

/** Without symbols; and the server says which version it is, as a released one does. */
const linkFlags = (): string => {
  const [, version = ''] =
    /k8s\.io\/kubernetes (v\S+)/.exec(readFileSync(join(SOURCES, 'go.mod'), 'utf8')) ?? [];
  return `-s -w -X k8s.io/component-base/version.gitVersion=${version}`;
};
