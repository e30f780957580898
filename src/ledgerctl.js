#!/usr/bin/env -S node --max-semi-space-size=16
/**
 * `ledgerctl` as npm links it, and the service as `npm start` runs it. In JavaScript, so that Node reads what it compiled before
 * and need not load what strips types, which takes a quarter of a short command.
 */
import { mkdirSync, statSync } from 'node:fs';
import nodeModule from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

const LEAST_NODE = 24;
if (Number.parseInt(process.versions.node, 10) < LEAST_NODE) {
  process.stderr.write(
    `Node ${LEAST_NODE} or later is needed, and this is ${process.versions.node}: after npm ci, use npm start or npx ledgerctl\n`,
  );
  process.exit(1);
}

// Half of a short command is compiling, and more than a third of a start.
const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'fulfillment-ledger');
try {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = statSync(folder);
  // What lies there is run as it is: only where nobody else can write.
  if (uid === process.getuid?.() && (mode & 0o022) === 0) {
    // Named imports that an older Node lacks would fail before the sentence above.
    nodeModule.enableCompileCache(folder);
    // Threads have it from here.
    process.env.NODE_COMPILE_CACHE ??= folder;
  }
} catch {
  // A folder that cannot be had costs time, and nothing else.
}
await import('./main.ts');
