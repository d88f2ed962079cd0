import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';

/** Long work on a store's database. Paths are absolute. */
export type Job =
  | {
      readonly kind: 'snapshot';
      readonly database: string;
      readonly collection: string;
      /** Where it appears, whole or not at all, with its checksum in a file beside it. */
      readonly file: string;
    }
  | {
      readonly kind: 'recover';
      readonly database: string;
      readonly collection: string;
      readonly file: string;
      /** SHA-256 in hexadecimal digits, where the caller knows it. */
      readonly checksum?: string | undefined;
    }
  /** All collections as they are at one moment. */
  | { readonly kind: 'copy'; readonly database: string; readonly file: string };

export type JobReply =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: HoldfastError['code']; readonly details: HoldfastError['details'] };
