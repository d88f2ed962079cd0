import type { FastifyInstance } from 'fastify';
import type { CodedError } from '../../kernel/errors/holdfast-error.ts';
import type { Logger } from '../logging/logger.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { BucketSize } from '../token-bucket.ts';
import type { CertificateFiles, CertificateStatus } from './certificate.ts';
import type { SocketOptions } from './listen-options.ts';
import type { Senders } from './peer.ts';
import type { UnhandledListener } from './requests.ts';

/** A listener as a plugin asks for it. @public */
export interface SurfaceOptions {
  /** Its name in `runtime.json`, log lines and metrics, e.g. `console`. */
  readonly name: string;
  /** 0 means any free one. */
  readonly port: number;
  /** 127.0.0.1 unless set. Anything beyond loopback needs `token`, or `admission: 'own'`. */
  readonly host?: string;
  /** A Unix socket to listen on instead (`listen-options.ts`); a relative path starts at the data folder. */
  readonly socket?: SocketOptions;
  /** Its certificate; it speaks TLS where it has one. A Unix socket needs none and ignores it. */
  readonly tls?: CertificateFiles;
  /** It may listen beyond loopback without TLS; not unless set. */
  readonly insecure?: boolean;
  /** Writes that one peer may make; 1,000 at once and 50 a second unless set. `own` where the surface has limits of its own, and `strangerBudget` for callers without a key. */
  readonly writeBudget?: BucketSize | 'own';
  /** It is the control socket of a data folder, which lies there whatever the folder's rights. */
  readonly isControl?: boolean;
  /** What answers 401 to a caller without a key, where handlers decide who may call: `doctor security` tries it. */
  readonly keyedPath?: { readonly method: 'GET' | 'POST'; readonly path: string };
  /** A path whose answer to GET holds secrets: `doctor security` finds out who gets it. */
  readonly secretPath?: string;
  /** Nothing is changed here without a credential of the caller's own; not unless set. */
  readonly readOnly?: boolean;
  /** A path that answers a plain GET, e.g. `/v1/config/active`: the ready lines of `holdfast start` suggest it. */
  readonly tryPath?: string;
  /** The environment variable that sets the port, named when the port cannot be had. */
  readonly portVariable: string;
  /** Largest body, bytes; 1 MiB unless set. */
  readonly bodyLimit?: number;
  /** Names under which it is served besides loopback names and the address itself, e.g. behind a proxy. */
  readonly allowedHosts?: readonly string[];
  /** Origin under which browsers see it, where that is not its address, e.g. `https://gw.example` behind a proxy. */
  readonly publicOrigin?: string | undefined;
  /** Refuses a foreign `Origin` on reading requests too, for surfaces whose reads are streams or show secrets. */
  readonly checkOriginOfReads?: boolean;
  /** The bearer token, read at each request, so that it can change. Everybody needs it where the surface is bound beyond loopback. */
  readonly token?: () => string | undefined;
  /** Where the token lies, absolute, for clients of this machine: they find it in `runtime.json`. */
  readonly tokenFile?: string;
  /** `token`: everybody needs the token, callers from this machine too; `loopback` unless set. */
  readonly auth?: 'loopback' | 'token';
  /** Whether its writes are recorded with the user of this machine who sent them; a route may say otherwise. Not unless set. */
  readonly recordsSenders?: boolean;
  /** Whether routes declared `credential: 'secret'` need the token, or the socket; not unless set. */
  readonly secretsNeedToken?: boolean;
  /** A header in which clients may send the token as well, in lower case, e.g. `api-key`. */
  readonly tokenHeader?: string;
  /** `own` when the surface's handlers decide who may call, by keys of their own or by tokens in the path; `token` unless set. */
  readonly admission?: 'token' | 'own';
  /**
   * The body of an error answer; the coded error itself unless set.
   *
   * @param path of the request, without its query; undefined where there was none
   */
  readonly errorBody?: (error: SurfaceError, path: string | undefined) => unknown;
  /** Paths are found in any letter case, and with a slash behind them; not unless set. */
  readonly lenientPaths?: boolean;
  /** How long a client may take to send a whole request, milliseconds; 30,000 unless set. Answers may take longer. */
  readonly requestTimeoutMs?: number;
}

export type SurfaceError = CodedError & { readonly status: number };

/**
 * What a plugin builds its routes on: fastify 5 without the parts that would undo what every surface promises.
 * `request.id` is the correlation id of the request; throw a `HoldfastError` to answer with it.
 *
 * @public
 */
export type HttpSurface = Pick<
  FastifyInstance,
  | 'addContentTypeParser'
  | 'addHook'
  | 'all'
  | 'delete'
  | 'get'
  | 'head'
  | 'patch'
  | 'post'
  | 'put'
  | 'register'
  | 'route'
> & {
  /** Aborted when the surface begins to drain: end streams that would otherwise go on until the deadline. */
  readonly draining: AbortSignal;
  /** Calls the listener for every request whose head was read and that reached no handler, whatever refused or ended it. */
  readonly onUnhandled: (listener: UnhandledListener) => void;
};

/** Where a listener is reached from this machine: what `runtime.json` says of it. */
export interface Place {
  /** E.g. `http://127.0.0.1:7800`, or `unix:/run/holdfast/console.sock`. */
  readonly url: string;
  /** The address that it is bound to, e.g. `0.0.0.0:7800`; absent of a socket. */
  readonly bound?: string;
  /** The certificate that it serves. Clients of this machine know it by its fingerprint, whatever name it is for. */
  readonly tls?: CertificateStatus;
  /** Where the token lies that it demands of callers of this machine too. */
  readonly tokenFile?: string;
}

/** What a listener gets from the runtime when it listens. */
export interface ListenDependencies {
  /** Connections beyond are closed unread; no limit unless set. */
  readonly maxConnections?: number;
  /** Called when what `listen` returned is another: a certificate was renewed, or cannot be. */
  readonly onPlace?: (place: Place) => void;
}

/** What `holdfast doctor` looks at of a listener that speaks another protocol than HTTP/1.1. */
export interface ListenerDeclaration {
  /** Its certificate, for a look while nothing runs. */
  readonly tls?: CertificateFiles;
  /**
   * Asks the running listener what a caller without any credential gets.
   *
   * @returns `key`: it refuses without a key; `certificate`: it lets nobody in without a client certificate; `none`: it serves
   * @throws Error whose message says why it is not known, e.g. `it did not answer`
   */
  readonly demand?: (place: Place, signal: AbortSignal) => Promise<'key' | 'certificate' | 'none'>;
}

/** One listener of the runtime: a surface, or what a plugin brings itself because it speaks another protocol (gRPC). */
export interface Listener extends ListenerDeclaration {
  /** Its name in `runtime.json`. */
  readonly name: string;
  /**
   * @returns where it can be reached from this machine
   * @throws HF_HTTP_TOKEN_REQUIRED it would be open to other machines without a token
   * @throws HF_HTTP_TLS_REQUIRED it would be open to other machines in plaintext; HF_HTTP_CERTIFICATE
   * @throws HF_HTTP_TOKEN_MISSING its options demand a token that there is not
   * @throws HF_HTTP_LISTEN the port or the address cannot be had; HF_HTTP_SOCKET the socket
   */
  listen(of?: ListenDependencies): Promise<Place>;
  /**
   * Stops gracefully: what is being answered is finished, new requests get 503, and at the deadline every
   * connection that is left is cut. Calling it again waits for the same end.
   *
   * @param deadlineMs longest wait for answers, milliseconds
   */
  close(deadlineMs: number): Promise<void>;
}

/** A listener for HTTP. */
export interface Surface extends Listener {
  /** Where routes are declared, before `listen`. */
  readonly http: HttpSurface;
}

export interface SurfaceDependencies {
  readonly logger: Logger;
  readonly metrics?: Metrics;
  /** Where it notes who sent a write. */
  readonly senders?: Senders | undefined;
}
