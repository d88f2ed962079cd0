import { z } from 'zod';
import { parseDuration } from '../duration.ts';
import { plaintextHost } from '../http/plaintext.ts';
import type { PluginEntry } from '../plugin/definition.ts';
import { parseSize } from '../retention/plan.ts';

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
  /** Which records are moved from the log to an archive automatically, once an hour; none unless set. */
  readonly retention?:
    | {
        /** Records older than this, e.g. `30d`. */
        readonly olderThan?: string | undefined;
        /** The oldest records, until the database holds no more than e.g. `500MB`. */
        readonly keepSize?: string | undefined;
        /** Where archives go, relative to the configuration file; `archive` in the data folder unless set. */
        readonly archive?: string | undefined;
      }
    | undefined;
  /**
   * Where the signed heads of the log go, outside of this machine's reach: a file on another mount, relative to the
   * configuration file, to which lines are appended; or a URL that gets them by POST. Nowhere unless set.
   */
  readonly witness?:
    | { readonly file: string }
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
  z.strictObject({
    url: z
      .url({ protocol: /^https?$/ })
      .refine((url) => plaintextHost(url) === undefined, 'https is needed beyond this machine'),
    tokenFile: z.string().min(1).optional(),
  }),
]);

/** What runs here: the plugins with their options, in any order. */
export interface Config {
  readonly plugins: readonly PluginEntry[];
  readonly data?: DataOptions;
}

/** The settings beside the plugins; a misspelt one is refused by name. */
export const settingsSchema = z.strictObject({
  plugins: z.array(z.unknown()),
  data: z
    .strictObject({
      dir: z.string().min(1).optional(),
      lingerMs: z.int().min(0).max(10_000).optional(),
      signEvery: z.int().min(1).max(1_000_000).optional(),
      patienceMs: z.int().min(100).max(600_000).optional(),
      witness: witnessSchema.optional(),
      retention: z
        .strictObject({
          olderThan: z
            .string()
            .refine((text) => parseDuration(text) !== undefined, 'an age such as 30d or 12h is needed')
            .optional(),
          keepSize: z
            .string()
            .refine((text) => parseSize(text) !== undefined, 'a size such as 500MB or 2GB is needed')
            .optional(),
          archive: z.string().min(1).optional(),
        })
        .refine(
          ({ olderThan, keepSize }) => olderThan !== undefined || keepSize !== undefined,
          'olderThan or keepSize is needed',
        )
        .optional(),
    })
    .optional(),
});

/**
 * The default export of `plugins.config.ts` (C11).
 *
 * @example
 * export default defineConfig({ plugins: [lamp({ port: 8100 }), lampSwitch()] });
 */
export function defineConfig(config: Config): Config {
  return Object.freeze(config);
}
