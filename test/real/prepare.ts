import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { kafkaInstallation } from '../../ops/real/kafka/installation.ts';
import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { rulebookEnvironment } from '../../ops/real/rulebook/environment.ts';
import { buildGoExample, grpcurl } from '../support/docs/client-examples.ts';
import { osacCommandLine } from '../support/grpc/osac-command-line.ts';
import { installGrpcio, installPythonTools } from '../support/openapi/python-tools.ts';

/**
 * Installs and builds the real servers before the suites that run on them do so beside each other: two must not fill one
 * cache folder, nor measure their patience beside a build on both cores. What cannot be had is told here, and by the
 * suite that needs it: it names itself as not run, or fails where `LEDGER_TEST_MUST_RUN` names it.
 */
const say = (line: string): void => console.log(`  ${line}`);

const PREPARATIONS = [
  kafkaInstallation,
  kubeBinary,
  rulebookEnvironment,
  installPythonTools,
  installGrpcio,
  osacCommandLine,
  grpcurl,
  () => rmSync(dirname(buildGoExample()), { recursive: true }),
];

for (const prepare of PREPARATIONS)
  try {
    prepare(say);
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
  }
