import { z } from 'zod';
import { secretReference } from '../../../core/host/secrets/secret-reference.ts';

// What an entry of `routes` may name in place of the URL of an MCP server.

const variable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'a variable has letters, digits and underscores');

/** A program that speaks MCP on its standard input and output. */
export const commandSchema = z.strictObject({
  run: z.string().min(1).max(4_096),
  args: z.array(z.string().max(32_768)).max(256).default([]),
  env: z.record(variable, z.string().max(32_768)).default({}),
  secrets: z.record(variable, secretReference).default({}),
  cwd: z.string().min(1).max(4_096).optional(),
  maxProcesses: z.int().min(1).max(1_000).default(8),
  maxProcessesPerKey: z.int().min(1).max(1_000).optional(),
  idleMs: z
    .int()
    .min(1_000)
    .max(86_400_000)
    .default(10 * 60_000),
  maxMemory: z
    .int()
    .min(16 * 1024 * 1024)
    .default(512 * 1024 * 1024),
});

/** An address without what would be lost, or be seen, when paths are appended to it. */
const plainUrl = z
  .url({ protocol: /^https?$/ })
  .refine((address) => !/[?#]/.test(address) && !/^https?:\/\/[^/]*@/i.test(address), {
    error: 'it has a query, a fragment, a user or a password',
  });

/** An HTTP API whose OpenAPI document makes the tools. */
export const openapiSchema = z
  .strictObject({
    /** The OpenAPI document (3.0 or 3.1, JSON or YAML): a file, or an `http(s)` address. At most 8 MiB. */
    document: z.string().min(1).max(4_096),
    /** Its SHA-256, which `holdfast gateway openapi <document>` shows. A document that is another one is refused. */
    digest: z.string().regex(/^sha256:[0-9a-f]{64}$/, 'a digest is sha256: and 64 hexadecimal digits'),
    /** Where the API is. The document's own `servers` count for nothing. */
    baseUrl: plainUrl,
    /** Ids of operations that become tools. */
    operations: z.array(z.string().min(1).max(256)).max(500).default([]),
    /** Tags whose operations become tools; those that can't be are left out. */
    tags: z.array(z.string().min(1).max(256)).max(100).default([]),
    /** The header that has the credential; as `Authorization: Bearer …` unless set. */
    credentialHeader: z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}$/, 'a header has letters, digits and hyphens')
      .optional(),
    /** The longest that a call of the API may take, milliseconds; `timeoutMs` of the route when that is shorter. */
    timeoutMs: z.int().min(100).max(3_600_000).default(30_000),
    /** The longest answer, bytes. */
    maxAnswer: z
      .int()
      .min(1_024)
      .max(8 * 1024 * 1024)
      .default(1024 * 1024),
  })
  .refine(({ operations, tags }) => operations.length + tags.length > 0, {
    path: ['operations'],
    error: 'name the operations, or tags of them',
  });

/** The same as `plugins.config.ts` writes it. */
export type OpenapiInput = z.input<typeof openapiSchema>;
