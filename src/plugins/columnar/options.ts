import { Cron } from 'croner';
import { z } from 'zod';
import { insecureOption, refusePlaintext } from '../../core/host/http/plaintext.ts';
import { secretReference } from '../../core/host/secrets/secret-reference.ts';

function isHttp(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return (url?.protocol === 'http:' || url?.protocol === 'https:') && url.hostname !== '';
}

const url = z
  .string()
  .refine(
    isHttp,
    'it must be the HTTP address of a ClickHouse, e.g. http://clickhouse:8123 or https://db.example.org',
  )
  .refine(
    (text) => !URL.canParse(text) || !/[@?#]/.test(text),
    'it must hold no user, password, query or fragment: HOLDFAST_CLICKHOUSE_USER and the secrets store have those',
  );

function isCron(text: string): boolean {
  try {
    new Cron(text, { paused: true });
    return true;
  } catch {
    return false;
  }
}

const cron = z.string().refine(isCron, 'it must be a cron pattern, e.g. 30 3 * * *');

/** Times are milliseconds unless they say otherwise. */
const fields = z.strictObject({
  /** HTTP address of a server, plain or TLS; without it the embedded engine keeps everything in the data folder. */
  url: url.optional(),
  user: z.string().min(1).max(128).default('default'),
  /** The user's password, by reference into the secrets store, e.g. `clickstack#admin_password`. */
  password: secretReference.optional(),
  /** The same as a file of mode 0600, read whenever the connection is made. */
  passwordFile: z.string().min(1).optional(),
  /** The user's password may go to another machine over `http://`. */
  insecure: insecureOption,
  /** PEM of the authorities that sign the server's certificate, in place of the system's. */
  caFile: z.string().min(1).optional(),
  /** A server's database; the embedded engine has `telemetry` alone. */
  database: z
    .string()
    .regex(/^[A-Za-z_]\w{0,63}$/, 'it must be a plain word')
    .default('default'),
  /** `host:port` of a server's native protocol when it is not port 9000 of the same host; only doctor connects to it. */
  native: z
    .string()
    .regex(/^[\w.[\]:-]+:\d{1,5}$/, 'it must be host:port')
    .optional(),
  /** How long rows are kept in the tables that Holdfast makes. */
  retentionDays: z.int().min(14, 'logs are kept for at least 14 days').max(3_650).default(30),
  /**
   * How many replicas the server has: with more than one, the tables must be replicated, and Holdfast does not create
   * them.
   */
  replicas: z.int().min(1).max(16).default(1),
  /** Between two checks whether the database answers. */
  checkMs: z.int().min(100).max(3_600_000).default(15_000),
  /** Folder of the embedded engine, mode 0700; `<data dir>/columnar` unless set. */
  folder: z.string().min(1).optional(),
  /** Backups of the embedded engine; a server is backed up by its operator. */
  backup: z
    .strictObject({
      /** Cron patterns, UTC. */
      cron: cron.default('30 3 * * *'),
      drillCron: cron.default('30 5 * * 0'),
      /** How many of the newest are kept. */
      keep: z.int().min(1).max(1_000).default(7),
      /** An alert is raised when there was no good backup for this time. */
      staleHours: z.number().min(1).max(8_760).default(26),
      /** `<data dir>/backups/columnar` unless set. */
      folder: z.string().min(1).optional(),
    })
    .prefault({}),
});

export const columnarOptions = fields.superRefine(({ url, insecure, password, passwordFile }, context) => {
  if (password === undefined && passwordFile === undefined) return;
  refusePlaintext(context, { url, insecure, credential: "the user's password" });
});

export type ColumnarOptions = z.output<typeof columnarOptions>;

/** Environment variables of the options. */
export const columnarVariables = {
  HOLDFAST_CLICKHOUSE_URL: 'url',
  HOLDFAST_CLICKHOUSE_USER: 'user',
  HOLDFAST_CLICKHOUSE_PASSWORD_SECRET: 'password',
  HOLDFAST_CLICKHOUSE_PASSWORD_FILE: 'passwordFile',
  HOLDFAST_CLICKHOUSE_CA_FILE: 'caFile',
  HOLDFAST_CLICKHOUSE_INSECURE: 'insecure',
  HOLDFAST_CLICKHOUSE_DATABASE: 'database',
  HOLDFAST_RETENTION_DAYS: 'retentionDays',
} as const;
