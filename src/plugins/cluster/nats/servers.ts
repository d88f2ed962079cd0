import { isLoopback } from '../../../core/host/http/admission.ts';

/** One server of NATS. */
export interface NatsServer {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly user?: string;
  readonly password?: string;
  /** As it was configured, with user and password. */
  readonly address: string;
  /** The same without user and password, for people and logs. */
  readonly shown: string;
}

const DEFAULT_PORT = 4222;

/**
 * Understands the servers of NATS as they are configured: `nats://[user:password@]host[:port]`, `tls://…`, separated by commas.
 *
 * @returns undefined when one of them is no such address
 */
export function parseServers(text: string): readonly NatsServer[] | undefined {
  const servers = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(parseServer);
  const known = servers.filter((server) => server !== undefined);
  return known.length === servers.length && known.length > 0 ? known : undefined;
}

/** @returns what is wrong with a list of servers, without its secrets; undefined when nothing is */
export function addressesProblem(text: string): string | undefined {
  const servers = parseServers(text);
  return servers === undefined
    ? 'nats://[user:password@]host[:port] is wanted, or tls://…; several with commas'
    : undefined;
}

/**
 * @param usesTls TLS is demanded of every server, whatever its address says
 * @returns the first server that everybody on the way to it can read along with
 */
export function plaintextServer(text: string, usesTls: boolean): string | undefined {
  if (usesTls) return undefined;
  return parseServers(text)?.find(({ host, tls }) => !tls && !isLoopback(host))?.shown;
}

function parseServer(text: string): NatsServer | undefined {
  const address = text.includes('://') ? text : `nats://${text}`;
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  if ((url.protocol !== 'nats:' && url.protocol !== 'tls:') || url.hostname === '') return undefined;
  if ((url.pathname !== '' && url.pathname !== '/') || url.search !== '' || url.hash !== '') return undefined;
  const [user, password] = [decode(url.username), decode(url.password)];
  if (user === undefined || password === undefined) return undefined;
  const port = url.port === '' ? DEFAULT_PORT : Number(url.port);
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port,
    tls: url.protocol === 'tls:',
    ...(user !== '' && { user }),
    ...(password !== '' && { password }),
    address: text,
    shown: `${url.protocol}//${url.hostname}:${port}`,
  };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
