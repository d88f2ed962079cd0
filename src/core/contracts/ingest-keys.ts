import { defineToken, type Token } from './token.ts';

/** Whether a presented token is admitted, and if not, why; never the token itself. */
export type IngestJudgement =
  | { readonly kind: 'accepted'; readonly fingerprint: string }
  /** An accepted key behind `Bearer `, which belongs not there. */
  | { readonly kind: 'prefixed' }
  /** The old token `otel_ingest_token` never admitted anybody; the answer to a producer that sends it names the key to use. */
  | { readonly kind: 'legacyToken' }
  | { readonly kind: 'unknown' };

/** A key without its value. */
export interface KnownIngestKey {
  readonly fingerprint: string;
  /** The one that is handed to producers. */
  readonly isCurrent: boolean;
  /** Who was seen with it since the start, and when last, epoch milliseconds; newest last. */
  readonly producers: readonly { readonly producer: string; readonly at: number }[];
}

/** The keys by which producers of telemetry are admitted: several at once while one is rotated (O2, O9). */
export interface IngestKeys {
  /**
   * Judges what a producer presented, in constant time, and remembers which producer was last seen with which key.
   *
   * @param presented the whole value of the `authorization` header
   * @param producer e.g. a service name or an address
   */
  judge(presented: string, producer: string): IngestJudgement;
  /**
   * The key to send to our own receiver.
   *
   * @throws HF_COLLECTOR_NO_KEY no key was read or made yet
   */
  current(): Promise<string>;
  /** The keys that are accepted, without their values; the current one first. */
  known(): readonly KnownIngestKey[];
}

/** Provided by the plugin that knows the collector's effective config. */
export const IngestKeysToken: Token<IngestKeys> = defineToken('collector.ingest_keys');
