import type { GovernedKind } from './field-governance.ts';

/**
 * The fields of a spec that catalogue items may govern. `*` is a key of a map: one segment, but for parameters, whose
 * names may hold dots.
 */
export type SpecShape = { readonly [field: string]: SpecShape };
export const LEAF: SpecShape = {};
export const REFERENCE: SpecShape = { id: LEAF, name: LEAF };
export const FULL_REFERENCE: SpecShape = { ...REFERENCE, project: LEAF, shared: LEAF };

/** A parameter's value is one leaf, whatever is inside its Any. */
export const PARAMETERS = 'template_parameters';
/** They say which item is meant. */
const ALWAYS_ALLOWED: readonly string[] = ['template', 'catalog_item'];

export const governedSpecOf = ({
  shape,
  ...kind
}: Pick<GovernedKind, 'message' | 'words' | 'secrets' | 'templateParts'> & {
  readonly shape: SpecShape;
}): GovernedKind => ({
  ...kind,
  alwaysAllowed: ALWAYS_ALLOWED,
  leaves: PARAMETERS,
  segmentsOf: (path) => {
    const segments = split(path);
    let inner: SpecShape | undefined = shape;
    for (const segment of segments) {
      if (segment === '') return undefined;
      inner = Object.hasOwn(inner, segment) && segment !== '*' ? inner[segment] : inner['*'];
      if (inner === undefined) return undefined;
    }
    return segments;
  },
});

const split = (path: string): readonly string[] =>
  path.startsWith(`${PARAMETERS}.`) ? [PARAMETERS, path.slice(PARAMETERS.length + 1)] : path.split('.');
