/** Usage that is not answered now; the same request may be later, or one for less at once. */
export class UsageRefused extends Error {
  override readonly name = 'UsageRefused';
  readonly reason: 'busy' | 'too-long' | 'too-many-rows' | 'cancelled';
  constructor(reason: UsageRefused['reason']) {
    super(`usage was not added up: ${reason}`);
    this.reason = reason;
  }
}
