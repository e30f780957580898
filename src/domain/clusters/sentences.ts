import { userText } from '../exclusive-use.ts';
import type { Holder } from '../holder.ts';
import { isSimulatedHub } from '../hubs/hub-facts.ts';
import { own } from '../json-tools.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { because, from, listOf, nameOf, objectOf, quoted, textOf, type Sentences } from '../sentences.ts';

/** What a cluster's timeline tells of its events. */
export const CLUSTER_SENTENCES: Sentences = {
  ClusterOrdered: (data) =>
    `Cluster${quoted(data['name'])} was ordered${from(nameOf(data['catalogItem']), ' from catalogue item ')}` +
    `${from(nameOf(data['template']), data['catalogItem'] === undefined ? ' from template ' : ', template ')}` +
    `${from(textOf(objectOf(data['version'])['version']), ', version ')}${nodeSets(data['nodeSets'])}.`,
  ClusterLabelled: 'The labels were changed.',
  ClusterAnnotated: 'The annotations were changed.',
  ClusterDescribed: 'The display name or description was changed.',
  NodeSetAdded: (data) =>
    `Node set${quoted(data['name'])} was added${from(sizeOf(data['nodeSet']), ' with ')}.`,
  NodeSetResized: (data) =>
    `Node set${quoted(data['name'])} is to be resized from ${textOf(data['from'])} to ${textOf(data['to'])} nodes.`,
  NodeSetRemoved: (data) => `Node set${quoted(data['name'])} is to be removed.`,
  ClusterSpecRevised: (data) => `The specification was changed${from(changedWords(data), ': ')}.`,
  ClusterFinalizersChanged: (data) => `Finalizers are now: ${joined(data['finalizers']) || 'none'}.`,
  ClusterStatusReported: 'A private caller reported a status.',
  HubSelected: (data) =>
    data['hub'] === undefined
      ? 'A management cluster was selected.'
      : `Hub${quoted(data['hub'])} was selected from ${listOf(objectOf(data['decision'])['candidates']).length} candidates` +
        `${data['simulated'] === true ? ' (simulated)' : ''}${starterOf(data['mode'])}${whyChosen(data)}.` +
        stepsOf(textOf(data['hub']), objectOf(data['steps'])),
  PlacementDeferred: (data) =>
    data['runs'] === true
      ? `The change is ${textOf(data['message'])}; the cluster runs on as before.`
      : `The order is ${textOf(data['message'])}.`,
  ClusterDispatchStarted: (data) => `The order is being sent to its hub${from(textOf(data['hub']), ', ')}.`,
  ClusterOrderPlaced: (data) => `The hub${quoted(data['hub'])} stored the order.`,
  ClusterSpecSynced: (data) => `The hub${quoted(data['hub'])} stored the changed specification.`,
  ClusterSpacePrepared: (data) =>
    `The ledger prepared hub${quoted(data['hub'])} for the order and made ${joined(data['created'])}.`,
  AutomationRequested: (data) =>
    `The automation of the hub${quoted(data['hub'])} was asked to ${deedOf(data)} the cluster` +
    `${data['mode'] === 'eda' ? ' by a webhook, without a confirmation' : ''}` +
    `${from(textOf(data['job']), ': job ')}${from(textOf(data['template']), ' of template ')}` +
    `${repeatOf(data)}.`,
  AutomationJobChanged: (data) =>
    `The job${from(textOf(data['job']), ' ')} to ${deedOf(data)} the cluster ${jobStateOf(data)}` +
    `${from(lastLineOf(data['outputTail']), ': ')}.`,
  AutomationTried: (data) => `Another try to ${deedOf(data)} the cluster${repeatOf(data)}.`,
  ClusterOrderSeen: 'The hub shows something new.',
  ClusterDriftCorrected: (data) =>
    `The order on hub${quoted(data['hub'])} was changed from outside; the ledger restored it` +
    `${from(joined(data['fields']), ': ')}.`,
  ClusterOrdersDuplicated: (data) =>
    `The hub${quoted(data['hub'])} holds further objects with the label of this cluster, which the ledger did not make: ` +
    `${joined(data['names'])}. Remove them by hand.`,
  ClusterConditionsObserved: ({ conditions, ready }) =>
    [conditionsShown(objectOf(conditions)), nodesShown(ready)].filter((words) => words !== '').join(' ') ||
    'The hub shows something new.',
  ControlPlaneBecameAvailable: (data) =>
    `The control plane is available${from(textOf(data['apiUrl']), ' at ')}.`,
  ClusterInstalled: 'The hub has built the cluster; the ledger sets it up and validates it.',
  ClusterBecameReady: 'The cluster is ready.',
  ClusterAborted: (data) =>
    `The order is undone: everything that was taken and made for it is given back${because(data)}.`,
  ClusterWithdrawn: 'Everything that was taken and made for the order is given back.',
  ClusterReconfiguring: 'A change of the cluster is being carried out.',
  ClusterDegraded: (data) => `The cluster is degraded${because(data)}.`,
  ClusterRecovered: 'The cluster has recovered.',
  ClusterFailed: (data) =>
    `The order failed${because(data)}. ${
      data['permanent'] === true ? 'It waits for a retry or a deletion.' : 'Retries go on.'
    }`,
  ClusterChangeFailed: (data) =>
    `${textOf(data['change']) === '' ? 'A change of the cluster' : `The ${textOf(data['change'])}`} failed${because(data)}. ` +
    'The cluster runs on as before.',
  ClusterFailureCleared: 'The failure cleared.',
  HubNotAccepting: (data) => `The hub${quoted(data['hub'])} holds the order but does not work on it.`,
  ClusterLostOnHub: (data) =>
    data['what'] === 'hosted-cluster'
      ? 'The hosted cluster vanished from its hub.'
      : 'The order vanished from its hub.',
  ClusterRetryRequested: 'An operator requested a retry.',
  ClusterCredentialsRevealed: (data) =>
    `The ${data['what'] === 'password' ? 'administrator password' : 'kubeconfig'} was shown to somebody.`,
  ClusterEndpointAttached: (data) =>
    `An external IP was attached to its ${endpointText(data)}, by ${userText(holderIn(data))}.`,
  ClusterEndpointDetached: (data) => `The external IP was detached from its ${endpointText(data)}.`,
  ClusterDeletionRequested: 'Deletion was requested.',
  ClusterDeletionBlocked: (data) => `Deletion waits for ${joined(data['waitingFor']) || 'its finalizers'}.`,
  ClusterDeletionOverdue: (data) =>
    `The deletion is overdue since ${textOf(data['since'])}` +
    `${from(joined(data['waitingFor']), '; it waits for ')}. It goes on.`,
  ClusterDeleted: (data) =>
    data['how'] === 'not-dispatched'
      ? 'The cluster was deleted before anything was sent to a hub.'
      : 'The cluster was deleted; its hub confirmed that nothing is left.',
  CreationAbandoned: 'The creation was abandoned before the order existed.',
};

const endpointText = (data: JsonObject): string => (data['endpoint'] === 'API' ? 'API' : 'ingress');
const holderIn = (data: JsonObject): Holder => {
  const holder = objectOf(data['holder']);
  return { kind: textOf(holder['kind']), id: textOf(holder['id']) };
};

const joined = (value: JsonValue | undefined): string => listOf(value).map(textOf).join(', ');
const conditionsShown = (conditions: JsonObject): string =>
  Object.keys(conditions).length === 0
    ? ''
    : `Conditions: ${eachOf(conditions, (condition) => conditionOf(objectOf(condition)))}.`;

const nodesShown = (ready: JsonValue | undefined): string => {
  if (ready === undefined) return '';
  return Object.keys(objectOf(ready)).length === 0
    ? 'The hub no longer shows node counts.'
    : `Ready nodes: ${eachOf(ready, textOf)}.`;
};

const eachOf = (value: JsonValue | undefined, words: (value: JsonValue) => string): string =>
  Object.entries(objectOf(value))
    .map(([name, one]) => `${name} ${words(one)}`)
    .join(', ');

/** Words for the fields of `ClusterSpecRevised`; a pull secret is one thing, given as a value or as an object. */
const FIELDS: { readonly [field: string]: string } = {
  sshPublicKey: 'SSH key',
  pullSecret: 'pull secret',
  pullSecretSecret: 'pull secret',
};
const changedWords = ({ changed, spec }: JsonObject): string => {
  const version = from(textOf(objectOf(objectOf(spec)['version'])['version']), ' to ');
  const words = listOf(changed).map(textOf);
  const told = words.map((field) =>
    field === 'version' ? `version${version}` : (own(FIELDS, field) ?? field),
  );
  return [...new Set(told)].join(', ');
};
/** Most characters of a condition's reason and message that are told; the event itself holds all. */
const MOST_OF_REASON = 80;
const MOST_OF_MESSAGE = 200;
/** `False (JobFailed: no free hosts)`: what the hub said of it, in one line; what is as expected needs no reason. */
const conditionOf = ({ status, reason, message }: JsonObject): string => {
  const why = shortened(textOf(reason), MOST_OF_REASON);
  const what = shortened(textOf(message).replace(/\.\s*$/, ''), MOST_OF_MESSAGE);
  const said = why === 'AsExpected' && what === '' ? [] : [why, what];
  const told = said.filter((text) => text !== '' && text !== textOf(status)).join(': ');
  return `${textOf(status)}${told === '' ? '' : ` (${told})`}`;
};
const shortened = (text: string, most: number): string => {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length <= most ? line : `${line.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
};
/** Hubs that a choice tells of one by one; the event itself holds all. */
const MOST_TOLD = 5;
/** What spoke for the hub and against the others. */
const whyChosen = (data: JsonObject): string => {
  const candidates = listOf(objectOf(data['decision'])['candidates']).map(objectOf);
  const told = candidates.slice(0, MOST_TOLD).map((candidate) => {
    const { hub, fits, total, reasons } = candidate;
    if (fits !== true) return `${textOf(hub)}: ${joined(reasons)}`;
    return `${textOf(hub)}${typeof total === 'number' ? ` scores ${total.toFixed(2)}` : ' fits'}`;
  });
  const more = candidates.length > MOST_TOLD ? [`${candidates.length - MOST_TOLD} more`] : [];
  return told.length === 0 ? '' : `: ${[...told, ...more].join('; ')}`;
};
/** Which attempt it is, and what became of the last one. */
const repeatOf = ({ repeats, mode }: JsonObject): string => {
  if (typeof repeats !== 'number' || repeats === 0) return '';
  const why = { aap: ': the job before failed', eda: ': the webhook before shows no effect' };
  return `, attempt ${repeats + 1}${mode === 'aap' || mode === 'eda' ? why[mode] : ''}`;
};
const deedOf = (data: JsonObject): string =>
  data['purpose'] === 'deprovision' ? 'tear down' : 'build or change';
const JOB_STATES: { readonly [state: string]: string } = {
  Pending: 'waits to be started',
  Waiting: 'waits for its turn',
  Running: 'is running',
  Succeeded: 'has succeeded',
  Failed: 'has failed',
  Canceled: 'was cancelled',
};
const jobStateOf = (data: JsonObject): string =>
  JOB_STATES[textOf(data['state'])] ?? 'no longer shows a state';
const lastLineOf = (value: JsonValue | undefined): string =>
  (textOf(value).trimEnd().split('\n').at(-1) ?? '').replace(/\.$/, '');
const sizeOf = (value: JsonValue | undefined): string => {
  const set = objectOf(value);
  const size = textOf(set['size']);
  return size === '' ? '' : `${size} nodes${from(nameOf(set['hostType']), ' of type ')}`;
};
const STARTERS: { readonly [mode: string]: string } = {
  eda: '; the ledger posts webhooks to its automation',
  aap: '; the ledger launches jobs of its automation',
};
const starterOf = (mode: JsonValue | undefined): string => STARTERS[textOf(mode)] ?? '';
const nodeSets = (value: JsonValue | undefined): string => {
  const sets = Object.entries(objectOf(value)).map(([name, set]) => `${name} ${sizeOf(set)}`.trimEnd());
  return sets.length === 0 ? '' : ` (${sets.join('; ')})`;
};

/** What a step does, by the name of its effect. */
export const CLUSTER_DEEDS: { readonly [effect: string]: string } = {
  place: 'find a hub',
  apply: 'send the order to its hub',
  check: 'look at the hub',
  prepare: 'make namespace, account and bindings',
  trigger: 'ask the automation to build or change it',
  undo: 'ask the automation to tear it down',
  cancel: 'cancel the job that runs',
  status: "write the order's status",
  finish: 'release the order',
  resize: 'reserve room for the change',
  delete: 'delete the order on its hub',
  release: 'free its room on the hub',
  agents: 'take nodes from the pool of the hub',
  'undo-agents': 'give its nodes back to be wiped',
  vlan: 'take a VLAN from its pool',
  'undo-vlan': 'give its VLAN back',
  l2: 'set up its VLAN on the switches',
  'undo-l2': 'remove its VLAN from the switches',
  ports: 'bind the ports of its nodes',
  'undo-ports': 'reset the ports of its nodes',
  'agent-addresses': 'see the addresses of its nodes',
  prefix: 'take a prefix from its pool',
  'undo-prefix': 'give its prefix back',
  l3: 'set up its prefix, DHCP and gateway',
  'undo-l3': 'remove its prefix, DHCP and gateway',
  'l3-bind': 'bind its prefix to its VLAN',
  'undo-l3-bind': 'release its prefix from its VLAN',
  'public-addresses': 'see its external IPs',
  nat: 'lead its external IPs to it',
  'undo-nat': 'take its external IPs away from it',
  dns: 'write its DNS records',
  'undo-dns': 'remove its DNS records',
  'dns-propagated': 'see its DNS records on every name server',
  'post-install-certificates': 'set up certificates',
  'post-install-operators': 'set up operators',
  'post-install-authentication': 'set up authentication',
  'validation-nodes': 'validate its nodes',
  'validation-operators': 'validate its operators',
  'validation-clusterversion': 'validate its version',
  'validation-applications': 'validate its applications',
  'make-addresses': 'make its external IPs',
  'remove-addresses': 'remove its external IPs',
};

/** What it means that a timer fired. */
export const CLUSTER_TIMERS: { readonly [timer: string]: string } = {
  'site-retry': 'A step was told to wait; the ledger asks again.',
  'pool-retry': 'A pool had nothing left; the ledger asks again.',
  'agents-retry': 'Nodes were short; the ledger asks again.',
  'reconsider-hub': 'The order was not sent to its hub for a while; another hub may take it.',
};

/** Which rule holds for each step of the order. A simulated hub plays what nobody else does. */
const stepsOf = (hub: string, rules: JsonObject): string => {
  const by = (rule: string): string =>
    Object.keys(rules)
      .filter((step) => rules[step] === rule)
      .join(', ');
  if (Object.keys(rules).length === 0) return '';
  if (isSimulatedHub(hub) && by('ledger') === '')
    return ` The simulated hub "${hub}" plays every step itself (${Object.keys(rules).join(', ')}): nothing real is set up.`;
  const parts = [
    from(by('hub'), `hub "${hub}" does `),
    from(by('none'), 'left out: '),
    from(by('ledger'), 'the ledger does '),
  ];
  return ` Steps of the order: ${parts.filter((part) => part !== '').join('; ')}.`;
};
