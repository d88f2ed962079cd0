/** Where a Redis is. */
export interface RedisAddress {
  /** Path of the Unix socket; absent: host and port are used. */
  readonly path?: string;
  readonly host?: string;
  readonly port?: number;
  readonly tls: boolean;
  readonly username?: string;
  readonly password?: string;
  /** The index that the URL names, when it names one. */
  readonly database?: number;
  /** The same address without user and password, for people and logs. */
  readonly shown: string;
}

/**
 * Understands `redis://[user:password@]host[:port][/index]`, `rediss://…` for TLS, and `unix:///path[?db=index]`.
 *
 * @returns undefined when it is none of these
 */
export function parseRedisUrl(text: string): RedisAddress | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const index = url.searchParams.get('db') ?? (url.protocol === 'unix:' ? '' : url.pathname.slice(1));
  if (!/^\d{0,4}$/.test(index)) return undefined;
  const database = index === '' ? {} : { database: Number(index) };
  if (url.protocol === 'unix:') {
    if (url.host !== '' || url.pathname.length < 2) return undefined;
    const path = decode(url.pathname);
    return path === undefined ? undefined : { path, tls: false, ...database, shown: shown(url) };
  }
  if ((url.protocol !== 'redis:' && url.protocol !== 'rediss:') || url.hostname === '') return undefined;
  const [username, password] = [decode(url.username), decode(url.password)];
  if (username === undefined || password === undefined) return undefined;
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? 6379 : Number(url.port),
    tls: url.protocol === 'rediss:',
    ...(username !== '' && { username }),
    ...(password !== '' && { password }),
    ...database,
    shown: shown(url),
  };
}

/** @returns the URL without user, password and query, fit for a log line; nothing of a text that is no such URL */
export function maskRedisUrl(text: string): string {
  return parseRedisUrl(text)?.shown ?? '(not a Redis URL)';
}

function shown({ protocol, host, pathname, searchParams }: URL): string {
  const index = searchParams.get('db');
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}${index === null ? '' : `?db=${index}`}`;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
