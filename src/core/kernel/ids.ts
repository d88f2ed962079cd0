declare const brand: unique symbol;
type Branded<T, Name extends string> = T & { readonly [brand]: Name };

/** Position of a record in the log; starts at 1 and has no gaps. */
export type Seq = Branded<number, 'Seq'>;
/** Milliseconds since the Unix epoch. */
export type EpochMs = Branded<number, 'EpochMs'>;
/** `<actor type>/<key>`, e.g. `lamp.bulb/hall`. */
export type ActorRef = Branded<string, 'ActorRef'>;
/** `<seq>.<index>`: the idempotency key of an effect, and the identity of a timer. */
export type EffectId = Branded<string, 'EffectId'>;
/** Keyed HMAC of something secret-bearing: equal values look equal, none can be read back. */
export type Fingerprint = Branded<string, 'Fingerprint'>;

/** What every fingerprint begins with, before its hexadecimal digits. */
export const FINGERPRINT_PREFIX = 'fp_';
/** Hexadecimal digits of a fingerprint: 128 bits. */
export const FINGERPRINT_DIGITS = 32;

export const asSeq = (value: number): Seq => value as Seq;
export const asEpochMs = (value: number): EpochMs => value as EpochMs;

let newest = { seq: 0, index: 0, id: '0.0' as EffectId };

/**
 * The id of one effect: the record that asked, and the place in its list. An id that is asked for twice in a row (when
 * the effect is opened and then run) is the same string, which V8 then finds faster as a key.
 */
export function effectId(seq: number, index: number): EffectId {
  if (newest.seq !== seq || newest.index !== index) {
    newest = { seq, index, id: `${seq}.${index}` as EffectId };
  }
  return newest.id;
}

/** @returns the seq of the record that asked for the effect */
export function seqOfEffect(id: string): Seq {
  return Number(id.slice(0, id.indexOf('.'))) as Seq;
}

/** @param type dotted actor type, without a slash; @param key anything, slashes included */
export function actorRef(type: string, key: string): ActorRef {
  return `${type}/${key}` as ActorRef;
}

/** The two parts of an actor's address; the key may hold slashes, the type does not. */
export function parseActorRef(ref: string): { type: string; key: string } {
  const slash = ref.indexOf('/');
  return slash < 0 ? { type: ref, key: '' } : { type: ref.slice(0, slash), key: ref.slice(slash + 1) };
}
