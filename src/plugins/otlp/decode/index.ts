/**
 * From the bytes of an OTLP request to rows of the signal tables, as text that is inserted as it is. `json.ts` and `protobuf.ts` give one loose shape,
 * `values.ts` reads its leaves and refuses what they must not be, `traces.ts`, `logs.ts` and `metrics.ts` map it. All
 * of it is pure and runs in the intake's thread.
 *
 * Imports core and protobufjs, the latter with the first body that needs it.
 */
export { decode, type Encoding, ownWriter, type Signal } from './decode.ts';
export { type Decoded, MAX_ROW_BYTES, type Row, type Writers } from './rows.ts';
export { BodyInvalid } from './values.ts';
