import { z } from 'zod';
import { parseDuration } from '../duration.ts';
import { plaintextHost } from '../http/plaintext.ts';
import type { PluginEntry } from '../plugin/definition.ts';
import { parseSize } from '../size.ts';

/** Where the runtime keeps its data, and how eagerly it writes. */
export interface DataOptions {
  /** The data folder, relative to the configuration file; `.holdfast` in the working directory unless set. */
  readonly dir?: string | undefined;
  /**
   * Milliseconds that a batched record may wait for others before it is committed; 40 unless set, so that it is durable
   * 50 ms after its effect (C2). On flash 1,000 is kinder, and gives that up: each small commit writes some 7 KiB.
   */
  readonly lingerMs?: number | undefined;
  /** The log is signed every so many records, and at a stop; 1,000 unless set. */
  readonly signEvery?: number | undefined;
  /** Milliseconds that the disk may take for one commit before requests are refused; 5,000 unless set. */
  readonly patienceMs?: number | undefined;
  /**
   * How much of the log is kept. Unless set otherwise, the live log holds at most 1 GiB and 90 days; what is older is
   * archived, compressed, and the archives hold at most 4 GiB: beyond that the oldest one is deleted. Each step is
   * recorded. `false`: nothing is archived or deleted.
   */
  readonly retention?:
    | false
    | {
        /** The oldest that a record of the live log may be; `90d` unless set, `false` for any age. */
        readonly olderThan?: string | false | undefined;
        /** The most that the live log holds, from `1MB`; `1GiB` unless set, `false` for any size. */
        readonly keepSize?: string | false | undefined;
        /** The most that the archives hold, from `1MB`; `4GiB` unless set, `false` to keep every archive. */
        readonly keepArchives?: string | false | undefined;
        /** Where archives go, relative to the configuration file; `archive` in the data folder unless set. */
        readonly archive?: string | undefined;
      }
    | undefined;
  /**
   * Room on the disk that is kept for the log, from `1MB`; `64MiB` unless set, `false` for none. It is given back when the
   * disk is full, so that decisions and a stop are still recorded.
   */
  readonly reserve?: string | false | undefined;
  /**
   * Where the signed heads of the log go, outside of this machine's reach: a file on another mount, relative to the
   * configuration file, to which lines are appended; a folder that gets a file a day; or a URL that gets them by POST.
   * Nowhere unless set.
   */
  readonly witness?:
    | { readonly file: string }
    | {
        readonly folder: string;
        /** So many days stay in it; 400 unless set. */
        readonly keepDays?: number | undefined;
      }
    | {
        readonly url: string;
        /** A file of mode 0600 with a bearer token, relative to the configuration file. */
        readonly tokenFile?: string | undefined;
      }
    | undefined;
}

/** The settings of `data.witness`. */
const witnessSchema = z.union([
  z.strictObject({ file: z.string().min(1) }),
  z.strictObject({ folder: z.string().min(1), keepDays: z.int().min(1).max(100_000).optional() }),
  z.strictObject({
    url: z
      .url({ protocol: /^https?$/ })
      .refine((url) => plaintextHost(url) === undefined, 'https is needed beyond this machine'),
    tokenFile: z.string().min(1).optional(),
  }),
]);

/** What runs here: the plugins with their options, in any order. @public */
export interface Config {
  readonly plugins: readonly PluginEntry[];
  readonly data?: DataOptions;
}

const HOUR_MS = 3_600_000;
const MB = 1_000_000;

const age = z.union([
  z.literal(false),
  z
    .string()
    .refine((text) => (parseDuration(text) ?? 0) >= HOUR_MS, 'an age such as 30d, or 1h at least, is needed'),
]);
const size = z.union([
  z.literal(false),
  z
    .string()
    .refine(
      (text) => (parseSize(text) ?? 0) >= MB,
      'a size such as 500MB or 2GiB, or 1MB at least, is needed',
    ),
]);

/** The settings beside the plugins; a misspelt one is refused by name. */
export const settingsSchema = z.strictObject({
  plugins: z.array(z.unknown()),
  data: z
    .strictObject({
      dir: z.string().min(1).optional(),
      lingerMs: z.int().min(0).max(10_000).optional(),
      signEvery: z.int().min(1).max(1_000_000).optional(),
      patienceMs: z.int().min(100).max(600_000).optional(),
      reserve: size.optional(),
      witness: witnessSchema.optional(),
      retention: z
        .union([
          z.literal(false),
          z.strictObject({
            olderThan: age.optional(),
            keepSize: size.optional(),
            keepArchives: size.optional(),
            archive: z.string().min(1).optional(),
          }),
        ])
        .optional(),
    })
    .optional(),
});

/**
 * The default export of `plugins.config.ts` (C11).
 *
 * @example
 * export default defineConfig({ plugins: [lamp({ port: 8100 }), lampSwitch()] });
 * @public
 */
export function defineConfig(config: Config): Config {
  return Object.freeze(config);
}
