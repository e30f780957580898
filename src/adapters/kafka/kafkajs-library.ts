import { createRequire } from 'node:module';
import { CompressionTypes, Kafka, Partitioners, logLevel } from 'kafkajs';

/**
 * kafkajs 2.2.4 with the repair of its request queue (libraries.md §5): as published, every connection to a broker
 * arms a timer of 1 ms again and again for as long as it lives, also when it has nothing to send. Whoever needs kafkajs
 * imports it from here, so that no client is made before the repair.
 */
type RequestQueue = { readonly pending: readonly unknown[]; readonly throttledUntil: number };
type Schedule = (this: RequestQueue) => void;

const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as {
  readonly prototype: { scheduleCheckPendingRequests: Schedule };
};
const schedule = prototype.scheduleCheckPendingRequests;
prototype.scheduleCheckPendingRequests = function () {
  if (this.pending.length > 0 || this.throttledUntil > Date.now()) schedule.call(this);
};

export { CompressionTypes, Kafka, Partitioners, logLevel };
