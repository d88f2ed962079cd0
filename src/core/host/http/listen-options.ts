import { isAbsolute, join, resolve } from 'node:path';
import { z } from 'zod';
import { readTokenFile } from '../secrets/token-file.ts';
import type { BucketSize } from '../token-bucket.ts';
import { certificateOptions } from './certificate.ts';
import { insecureOption } from './plaintext.ts';
import { USUAL_WRITES } from './request-budget.ts';

/** A Unix socket in place of a port: whom it lets in is decided by the rights on the file. */
const socketOptions = z.strictObject({
  /** Its path; a relative one starts at the data folder. Nobody but this user and root may be able to replace it. */
  path: z.string().min(1),
  /** Who may connect: this user (`0600`), the group too (`0660`), or every user of this machine (`0666`). */
  mode: z.enum(['0600', '0660', '0666']).default('0660'),
  /** Name or number of the group that it belongs to; that of this process unless set. */
  group: z.union([z.string().min(1), z.int().min(0)]).optional(),
});

/**
 * Where a surface listens: the options of every surface, to spread in the strict object of its plugin's options.
 *
 * @param port unless set
 */
export function addressOptions(port: number) {
  return {
    /** 0 takes any free one. */
    port: z.int().min(0).max(65_535).default(port),
    /** Anything beyond loopback demands a credential of everybody. */
    host: z.string().min(1).default('127.0.0.1'),
    /** Names beside loopback and the address itself under which it is called, e.g. behind a proxy. */
    allowedHosts: z.array(z.string()).default([]),
    /** A Unix socket that it listens on in place of `host` and `port`. */
    socket: socketOptions.optional(),
    /** Its certificate: it speaks TLS 1.2 or newer, and nothing else. The files are read again when they change. */
    tls: certificateOptions.optional(),
    /** Whether it may listen beyond loopback without TLS, because something in front of it keeps strangers away. */
    insecure: insecureOption,
  };
}

/** How often one caller may do something. @param usual unless set */
export function budgetOption(usual: BucketSize = USUAL_WRITES) {
  return z
    .strictObject({ burst: z.int().min(1).max(10_000_000), perSecond: z.number().min(0.001).max(1_000_000) })
    .default(usual);
}

/**
 * `addressOptions`, and who needs the surface's token. Surfaces that ask everybody for a key of their own take
 * `addressOptions` alone.
 *
 * @param port unless set
 * @param writes of one caller, unless set
 * @public
 */
export function listenOptions(port: number, writes: BucketSize = USUAL_WRITES) {
  return {
    ...addressOptions(port),
    /** `loopback`: callers from this machine need no token where it listens on loopback or a socket. `token`: everybody does. */
    auth: z.enum(['loopback', 'token']).default('loopback'),
    /** File (mode 0600) with the bearer token, read at each request; needed with `auth: 'token'`, and beyond loopback. */
    tokenFile: z.string().min(1).optional(),
    /** Writes that one caller (address, or user of this machine) may make at once, and how many more each second allows. */
    writeBudget: budgetOption(writes),
  };
}

/** Where a surface listens, with defaults. */
export type AddressOptions = z.output<z.ZodObject<ReturnType<typeof addressOptions>>>;
/** Where a surface listens and who needs its token, with defaults. @public */
export type ListenOptions = z.output<z.ZodObject<ReturnType<typeof listenOptions>>>;
/** A Unix socket to listen on. */
export type SocketOptions = z.output<typeof socketOptions>;

/** The options of a plugin that its surface is opened with (`SurfaceOptions`). */
export function addressOf({ port, host, allowedHosts, socket, tls, insecure }: AddressOptions) {
  return {
    ...{ port, host, allowedHosts },
    ...(socket && { socket }),
    ...(tls && { tls }),
    ...(insecure !== undefined && { insecure }),
  };
}

/** The options of a surface (`context.http`) that a plugin with `listenOptions` was given: address, token and limits. @public */
export function listeningOf(options: ListenOptions) {
  const { auth, tokenFile, writeBudget } = options;
  const file = tokenFile === undefined ? undefined : resolve(tokenFile);
  const token = () => (file === undefined ? undefined : readTokenFile(file));
  return { ...addressOf(options), auth, token, writeBudget, ...(file !== undefined && { tokenFile: file }) };
}

/** @returns the absolute path of a socket that the options name */
export function socketPath({ path }: Pick<SocketOptions, 'path'>, dataDir: string): string {
  return isAbsolute(path) ? path : join(dataDir, path);
}
