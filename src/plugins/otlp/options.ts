import { z } from 'zod';
import { addressOptions, budgetOption } from '../../core/host/http/listen-options.ts';

const MIB = 1024 * 1024;
const port = z.int().min(0).max(65_535);

export const otlpOptions = z.strictObject({
  /** OTLP over HTTP; the key is required on every address. */
  ...addressOptions(4318),
  /** Requests without a known key that one caller may make at once, and how many more each second allows. */
  strangerBudget: budgetOption(),
  /** Port of OTLP over gRPC, on the same `host`. */
  grpcPort: port.default(4317),
  /** For producers from outside: gRPC that demands a client certificate besides the key. Off unless `port` is set. */
  mtls: z
    .strictObject({
      port: port.optional(),
      host: z.string().min(1).default('127.0.0.1'),
      /** PEM files. They are read again when they change: a renewed certificate needs no restart. */
      certFile: z.string().min(1).optional(),
      keyFile: z.string().min(1).optional(),
      /** The authority that signs client certificates. */
      clientCaFile: z.string().min(1).optional(),
      /** How often the files are read, milliseconds. */
      checkMs: z.int().min(10).max(86_400_000).default(10_000),
    })
    .prefault({}),
  /** Largest body, also after inflating, bytes. */
  bodyLimit: z
    .int()
    .min(1_024)
    .max(256 * MIB)
    .default(20 * MIB),
  /** In which a request comes whole, milliseconds. */
  requestTimeoutMs: z.int().min(100).max(3_600_000).default(30_000),
  /** Memory for all bodies that are being received or wait for their answer, bytes. */
  memoryLimit: z
    .int()
    .min(MIB)
    .default(32 * MIB),
  /** Room on disk for rows that are answered and not in the database, bytes. */
  spoolLimit: z
    .int()
    .min(MIB)
    .default(512 * MIB),
  /** How long rows wait for others before they are written, milliseconds. */
  lingerMs: z.int().min(0).max(1_000).default(20),
});
