/** `node ops/bench/support/verify-bundle.ts <bundle>`: verifies it as `ledgerctl audit verify` does, in a process of its own. */
import { verifyBundle } from '../../../src/app/audit/bundle/verify.ts';
import { openBundle } from '../../../src/cli/audit/bundle-source.ts';

const [path = ''] = process.argv.slice(2);
const started = performance.now();
const { ok, count, counts } = await verifyBundle(await openBundle(path));
const ms = performance.now() - started;
const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
console.log(
  JSON.stringify({
    ok,
    count,
    events: counts.events,
    ms,
    processorMs: (userCPUTime + systemCPUTime) / 1000,
    peakMb: maxRSS / 1024,
  }),
);
