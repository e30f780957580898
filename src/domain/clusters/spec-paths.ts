/**
 * The fields of a cluster's spec that a catalogue item may govern (OSAC). `*` is a key of a
 * map: one segment, but for parameters, whose names may hold dots. A test compares this with the message.
 */
type Shape = { readonly [field: string]: Shape };
const LEAF: Shape = {};
const REFERENCE: Shape = { id: LEAF, name: LEAF };
const FULL_REFERENCE: Shape = { ...REFERENCE, project: LEAF, shared: LEAF };

const GOVERNABLE: Shape = {
  template_parameters: { '*': LEAF },
  node_sets: { '*': { host_type: FULL_REFERENCE, size: LEAF } },
  pull_secret: LEAF,
  ssh_public_key: LEAF,
  version: FULL_REFERENCE,
  network: { pod_cidr: LEAF, service_cidr: LEAF },
  network_attachment: { subnet: REFERENCE, security_groups: LEAF },
  auto_external_ip_attachment: LEAF,
  pull_secret_secret: REFERENCE,
};

/** Fields that every caller may set: they say which item is meant. */
export const ALWAYS_ALLOWED: readonly string[] = ['template', 'catalog_item'];

/** A parameter's value is one leaf, whatever is inside its Any. */
export const PARAMETERS = 'template_parameters';

/** A dotted path as the keys it walks through; undefined when a cluster's spec has no such field. */
export const specSegments = (path: string): readonly string[] | undefined => {
  const segments = split(path);
  let shape: Shape | undefined = GOVERNABLE;
  for (const segment of segments) {
    if (segment === '') return undefined;
    shape = Object.hasOwn(shape, segment) && segment !== '*' ? shape[segment] : shape['*'];
    if (shape === undefined) return undefined;
  }
  return segments;
};

const split = (path: string): readonly string[] =>
  path.startsWith(`${PARAMETERS}.`) ? [PARAMETERS, path.slice(PARAMETERS.length + 1)] : path.split('.');
