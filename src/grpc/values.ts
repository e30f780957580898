import { fromBinary, ScalarType, type DescEnum, type DescField, type DescMessage } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { MAX_JSON_VALUES, tooManyValues } from '../http/body.ts';
import { READ } from '../http/osac/messages.ts';

/** What stands behind a tag. */
type Kind = {
  readonly wire: WireType;
  /** A list of numbers may come as one record. */
  readonly packs?: boolean;
  readonly scan?: (bytes: Uint8Array) => void;
};

/**
 * Counts what REST counts of the same request in JSON, before objects are made of it: two bytes are enough for an item
 * of a list. Throws ApiError 400 for too many, and an error for bytes that are no such message.
 */
export const assertFewValues = (schema: DescMessage, message: Uint8Array): void => {
  // Each value takes a byte at least.
  if (message.byteLength <= MAX_JSON_VALUES) return;
  let values = 1;
  const countOne = (): void => {
    values += 1;
    if (values > MAX_JSON_VALUES) throw tooManyValues();
  };

  /** The first `free` records count no more than what holds them: a message without a comma is one value. */
  const scanRecords = (
    bytes: Uint8Array,
    free: number,
    kindAt: (number: number) => Kind | undefined,
  ): void => {
    const reader = new BinaryReader(bytes);
    for (let records = 1; reader.pos < reader.len; records += 1) {
      const [number, wireType] = reader.tag();
      if (records > free) countOne();
      const kind = kindAt(number);
      if (kind?.packs === true && wireType === WireType.LengthDelimited) scanPacked(reader.bytes(), kind);
      // The decoder takes the type of the field, whatever the tag says: the two would see different messages.
      else if (kind !== undefined && kind.wire !== wireType) throw new TypeError('a field of another type');
      else if (kind?.scan === undefined) reader.skip(wireType, number);
      else kind.scan(reader.bytes());
    }
  };
  const scanPacked = (bytes: Uint8Array, { wire }: Kind): void => {
    const reader = new BinaryReader(bytes);
    for (let items = 1; reader.pos < reader.len; items += 1) {
      if (items > 1) countOne();
      reader.skip(wire);
    }
  };
  const scanMessage = (of: DescMessage, bytes: Uint8Array): void => {
    scanRecords(bytes, 1, (number) => {
      const field = of.fields.find((one) => one.number === number);
      return field === undefined ? undefined : kindOf(field);
    });
    if (of.typeName === AnySchema.typeName) scanAny(bytes);
  };
  const scanAny = (bytes: Uint8Array): void => {
    const { typeUrl, value } = fromBinary(AnySchema, bytes);
    const held = READ.registry.getMessage(typeUrl.slice(typeUrl.lastIndexOf('/') + 1));
    if (held !== undefined) scanMessage(held, value);
  };
  const kindOf = (field: DescField): Kind => {
    const single = singleOf(field);
    if (field.fieldKind === 'list') return { ...single, packs: single.wire !== WireType.LengthDelimited };
    if (field.fieldKind !== 'map') return single;
    const [key, value] = [{ wire: wireOf(field.mapKey) }, single];
    return {
      wire: WireType.LengthDelimited,
      scan: (bytes) =>
        scanRecords(bytes, 2, (number) => (number === 1 ? key : number === 2 ? value : undefined)),
    };
  };
  const singleOf = ({ message: held, scalar }: Valued): Kind =>
    held === undefined
      ? { wire: wireOf(scalar ?? ScalarType.INT32) }
      : { wire: WireType.LengthDelimited, scan: (bytes) => scanMessage(held, bytes) };

  scanMessage(schema, message);
};

type Valued = {
  readonly message: DescMessage | undefined;
  readonly scalar: ScalarType | undefined;
  readonly enum: DescEnum | undefined;
};

const wireOf = (scalar: ScalarType): WireType => {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
};
