import { isIP } from 'node:net';
import type { Authenticator, ConnectionOptions } from '@nats-io/transport-node';
import { readSecretFile } from '../../../core/kernel/secret-file.ts';
import type { ClusterOptions } from '../options.ts';
import { type Dialled, dialled } from './dialled.ts';
import { type NatsServer, parseServers } from './servers.ts';

/** What a connection needs to know. */
export type DialOptions = Pick<ClusterOptions, 'servers' | 'name' | 'host' | 'credentialsFile' | 'tls'>;

type Transport = typeof import('@nats-io/transport-node');

/** How long one server may take for a connection: longer with each round, because a busy machine is slow. Milliseconds. */
const PATIENCE_MS = { first: 1_000, most: 5_000 };

/**
 * Connects to the servers of NATS, one after the other. A connection that is lost is never used again: `NatsLink` makes a new one, so that
 * there is one way back, and nothing that was sent while nobody listened is sent later.
 */
export class Dialler {
  readonly #transport: Transport;
  readonly #options: DialOptions;
  readonly #servers: readonly NatsServer[];
  #next = 0;
  #failed = 0;

  constructor(transport: Transport, options: DialOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#servers = parseServers(options.servers) ?? [];
  }

  /** The servers, without their secrets. */
  get shown(): string {
    return this.#servers.map(({ shown }) => shown).join(', ');
  }

  /** How many of them have been tried since the last connection. */
  get failed(): number {
    return this.#failed;
  }

  get count(): number {
    return this.#servers.length;
  }

  /**
   * Looks whether the files can be used. They are read again for each connection, because they may be renewed.
   *
   * @throws HF_CONFIG_SECRET_MISSING and its like
   */
  check(): void {
    const { credentialsFile, tls } = this.#options;
    for (const file of [credentialsFile, tls.keyFile]) if (file !== undefined) readSecretFile(file);
  }

  /**
   * Connects to the next server.
   *
   * @throws Error it does not answer, or does not let us in; its text holds no secret
   */
  async dial(): Promise<Dialled> {
    const server = this.#servers[this.#next % this.#servers.length];
    if (server === undefined) throw new Error('no server is configured');
    this.#next += 1;
    const round = Math.floor(this.#failed / this.#servers.length);
    this.#failed += 1;
    const timeout = Math.min(PATIENCE_MS.first * 2 ** Math.min(round, 8), PATIENCE_MS.most);
    const settings = this.#settings(server, timeout);
    let connected: Dialled;
    try {
      connected = await dialled(() => this.#transport.connect(settings));
    } catch (error) {
      const reason = error instanceof Error ? error.message || error.name : 'no reason was given';
      throw new Error(`${server.shown}: ${reason}`);
    }
    this.#failed = 0;
    this.#next -= 1; // the same one first when it is lost, because most losses are short
    return connected;
  }

  #settings(server: NatsServer, timeout: number): ConnectionOptions {
    const { name, host, credentialsFile, tls } = this.#options;
    const { usernamePasswordAuthenticator } = this.#transport;
    const usesTls = server.tls || tls.caFile !== undefined || tls.certFile !== undefined;
    // Without a name the client would compare the certificate with `localhost`.
    const named = isIP(server.host) === 0 ? { servername: server.host } : { host: server.host };
    const files = {
      ...(tls.caFile !== undefined && { caFile: tls.caFile }),
      ...(tls.certFile !== undefined && { certFile: tls.certFile }),
      ...(tls.keyFile !== undefined && { key: readKeyFile(tls.keyFile) }),
    };
    return {
      servers: [`${server.host.includes(':') ? `[${server.host}]` : server.host}:${server.port}`],
      name: `holdfast ${name} ${host}`,
      timeout,
      reconnect: false,
      ignoreClusterUpdates: true,
      noAsyncTraces: true,
      ...(usesTls && { tls: { ...named, ...files } }),
      ...(credentialsFile !== undefined && {
        authenticator: this.#credentials(readSecretFile(credentialsFile)),
      }),
      ...(credentialsFile === undefined &&
        server.user !== undefined && {
          authenticator: usernamePasswordAuthenticator(server.user, server.password ?? ''),
        }),
    };
  }

  #credentials(content: Buffer): Authenticator {
    const { credsAuthenticator, nkeyAuthenticator } = this.#transport;
    const seed = content.toString('utf8').trim();
    return SEED.test(seed) ? nkeyAuthenticator(Buffer.from(seed)) : credsAuthenticator(content);
  }
}

/** The seed of a user of NATS, alone in its file. */
const SEED = /^SU[A-Z2-7]{56}$/;

/** The key of a certificate has several lines. */
function readKeyFile(file: string): string {
  return readSecretFile(file).toString('utf8');
}
