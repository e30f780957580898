import { expect } from 'chai';
import fc from 'fast-check';
import {
  bareMetalDecider,
  type BareMetalCommand,
  type BareMetalEvent,
  type BareMetalState,
} from '../../../../src/domain/bare-metal/bare-metal-instance.resource.ts';
import { bareMetalMeter } from '../../../../src/domain/bare-metal/bare-metal-meter.ts';
import type { ObservedBareMetal } from '../../../../src/domain/bare-metal/event-shapes.ts';
import { isRejection } from '../../../../src/domain/decider.ts';
import { check } from '../../../support/property.ts';

const START = Date.parse('2026-11-23T12:00:00.000Z');
const time = (seconds: number): string => new Date(START + seconds * 1_000).toISOString();

/** What a hub shows of it, changed by itself, with the times that are true. */
type Hub = {
  host?: number | undefined;
  lost?: number;
  power?: { on: boolean; at: number } | undefined;
  failed?: boolean;
};

const shown = ({ host, lost, power, failed = false }: Hub): ObservedBareMetal => {
  const condition = (type: string, is: boolean, reason: string, at: number) => ({
    type,
    status: is ? ('True' as const) : ('False' as const),
    reason,
    lastTransitionTime: time(at),
  });
  const allocated =
    host === undefined
      ? lost === undefined
        ? []
        : [condition('Allocated', false, 'NoMatchingHost', lost)]
      : [condition('Allocated', true, 'HostAllocated', host)];
  const powered =
    power === undefined ? [] : [condition('PowerSynced', true, power.on ? 'PowerOn' : 'PowerOff', power.at)];
  const phase = failed
    ? 'Failed'
    : host === undefined
      ? 'Allocating'
      : power === undefined
        ? 'Progressing'
        : 'Ready';
  return { phase, conditions: [...allocated, ...powered], nics: [], attachments: [] };
};

const machine = () => {
  let state: BareMetalState = bareMetalDecider.initialState();
  let meter = bareMetalMeter.initial();
  const total = { reserved: 0, powered: 0 };
  const fold = (event: BareMetalEvent): void => {
    const { open, atMs } = meter;
    state = bareMetalDecider.evolve(state, event);
    ({ meter } = bareMetalMeter.fold(meter, event as never));
    for (const { component } of open)
      total[component.nodeSet as keyof typeof total] += (meter.atMs - atMs) / 1_000;
  };
  const tell = (command: BareMetalCommand): void => {
    const events = bareMetalDecider.decide(state, command);
    if (isRejection(events)) throw new Error(events.message);
    events.forEach(fold);
  };
  const document = { spec: { catalog_item: { id: 'server', name: 'server' } } };
  const common = { id: 'm', tenant: 't1', project: '', creator: 'ann', name: 'm' };
  tell({ type: 'CreateDocument', at: time(0), ...common, document });
  const place = {
    hub: 'h',
    namespace: 'osac',
    objectName: 'm',
    simulated: false,
    controller: 'operator',
  } as const;
  tell({ type: 'PlaceOnHub', at: time(0), ...place });
  return { tell, total };
};

/** Seconds that pass, and what happens then. A host is changed again only after a look. */
const happening = fc.record({
  after: fc.integer({ min: 1, max: 5_000 }),
  what: fc.constantFrom('host', 'power', 'fail', 'recover', 'lack', 'look', 'look'),
});

describe('the bill of a bare-metal instance, whenever its hub is looked at', () => {
  it('reserves exactly from when it got its host until it lost it or was to be returned', () => {
    check(
      fc.property(
        fc.array(happening, { maxLength: 30 }),
        fc.integer({ min: 1, max: 9_999 }),
        (story, last) => {
          const { tell, total } = machine();
          let hub: Hub = {};
          let now = 0;
          let expected = 0;
          let isSeen = true;
          const look = (): void => {
            if (hub.host === undefined && hub.lost === undefined && hub.failed !== true) return;
            tell({ type: 'RecordObserved', at: time(now), observed: shown(hub) });
            isSeen = true;
          };
          for (const { after, what } of story) {
            now += after;
            if (what === 'look') look();
            // What we record ourselves between two looks bills nothing.
            else if (what === 'lack')
              tell({ type: 'ReportLacking', at: time(now), message: `pool full at ${now}` });
            else if (what === 'fail' || what === 'recover') hub = { ...hub, failed: what === 'fail' };
            else if (what === 'power' && hub.host !== undefined)
              hub = { ...hub, power: { on: hub.power?.on !== true, at: now } };
            else if (what === 'host' && isSeen) {
              isSeen = false;
              if (hub.host === undefined) hub = { ...hub, host: now };
              else {
                expected += now - hub.host;
                const power =
                  hub.power === undefined ? undefined : { on: false, at: hub.power.on ? now : hub.power.at };
                hub = { ...hub, host: undefined, lost: now, power };
              }
            }
          }
          look();
          now += last;
          tell({ type: 'DeleteDocument', at: time(now) });
          if (hub.host !== undefined) expected += now - hub.host;
          expect(total.reserved).to.be.closeTo(expected, 0.001);
          expect(total.powered).to.be.at.most(total.reserved);
        },
      ),
    );
  });
});
