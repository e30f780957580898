/**
 * Checked filters (OSAC): what is left of a CEL text once every name was resolved against the message
 * it is about. Lists translate it to SQL, watches evaluate it; a property test compares both with a naive evaluator.
 *
 * Values are those of the canonical JSON documents: enums are compared by number, 64-bit numbers as bigint, timestamps
 * to the nanosecond. A field that the document leaves out reads as `FieldPath.absent`, where it has one, else as null.
 * Logic is that of SQL: a comparison with null is neither true nor false, except `== null` and `!= null`.
 */
export type FilterNode =
  | { readonly op: 'and' | 'or'; readonly left: FilterNode; readonly right: FilterNode }
  | { readonly op: 'not'; readonly of: FilterNode }
  | { readonly op: 'constant'; readonly value: boolean }
  | {
      readonly op: '==' | '!=' | '<' | '<=' | '>' | '>=';
      readonly left: FilterValue;
      readonly right: FilterValue;
    }
  /** `x in [..]` with literals. */
  | { readonly op: 'in'; readonly value: FilterValue; readonly list: readonly Literal[] }
  /** `x in this.repeated` and `'key' in this.map`. */
  | { readonly op: 'in-field'; readonly value: FilterValue; readonly field: FieldPath }
  | {
      readonly op: 'contains' | 'startsWith' | 'endsWith';
      readonly of: FilterValue;
      readonly text: string;
    }
  | { readonly op: 'has'; readonly field: FieldPath }
  /** A boolean field or map value standing alone. */
  | { readonly op: 'truth'; readonly of: FilterValue };

export type Literal = string | number | bigint | boolean;

export type FilterValue =
  | { readonly kind: 'literal'; readonly value: Literal | null }
  /** Server time, the same for a whole evaluation. */
  | { readonly kind: 'now' }
  | { readonly kind: 'field'; readonly field: FieldPath }
  | {
      readonly kind: 'arithmetic';
      readonly op: '+' | '-' | '*' | '/' | '%';
      readonly left: FilterValue;
      readonly right: FilterValue;
    };

/** Type of what a path leads to, as far as comparisons need it. */
export type FieldType =
  | 'string'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'double'
  | 'enum'
  | 'timestamp'
  | 'message'
  | 'list'
  | 'map';

/**
 * A place in the canonical document: `['spec', 'template', 'id']`, map keys included. Of an event filter the path
 * begins
 * behind `event`: `['cluster', 'status', 'state']`, `['type']`.
 */
export type FieldPath = {
  readonly path: readonly string[];
  readonly type: FieldType;
  /** Numbers by name, of an enum field. */
  readonly enumNumbers?: Readonly<Record<string, number>>;
  /** Of a list: type of its items; of a map: of its values. */
  readonly items?: FieldType;
  /** What the field reads as when the document leaves it out; none: null. */
  readonly absent?: Literal;
  /** The last step is the key of a map: `!=` is true and `==` false when the key is missing (OSAC). */
  readonly mapValue?: true;
  /** Compared part by part between its dots, not as one text: project names. */
  readonly dotted?: true;
};

/** One term of `order` (OSAC). */
export type OrderTerm = { readonly field: FieldPath; readonly descending: boolean };
