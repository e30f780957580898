/**
 * `node ops/bench/support/verify-bundle.ts <bundle>`: verifies it as `ledgerctl audit verify` does, in a process of its own that
 * has all of `ledgerctl` in memory.
 */
import '../../../src/cli/ledgerctl.ts';
import { verifyBundle } from '../../../src/app/audit/bundle/verify.ts';
import { openBundle } from '../../../src/cli/audit/bundle-source.ts';
import { peakMb } from './report.ts';

const [path = ''] = process.argv.slice(2);
const started = performance.now();
const { ok, count, counts, findings } = await verifyBundle(await openBundle(path));
const ms = performance.now() - started;
const { userCPUTime, systemCPUTime } = process.resourceUsage();
console.log(
  JSON.stringify({
    ok,
    count,
    first: findings[0],
    events: counts.events,
    ms,
    processorMs: (userCPUTime + systemCPUTime) / 1000,
    peakMb: peakMb(process.pid),
  }),
);
