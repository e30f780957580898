#!/usr/bin/env -S node --max-semi-space-size=8
/**
 * `ledgerctl` as npm links it. In JavaScript, so that Node reads what it compiled before and need not load what strips types,
 * which takes a quarter of a short command.
 */
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

// As in main.ts, which is also started by itself.
if (process.argv[2] !== 'serve')
  enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'fulfillment-ledger'));
await import('./main.ts');
