import { isIP } from 'node:net';
import { z } from 'zod';
import { insecureOption, refusePlaintext } from '../../core/host/http/plaintext.ts';
import { secretReference } from '../../core/host/secrets/secret-reference.ts';

/** A monitor's name: it is a file name, an actor's key and a part of an address. */
const monitorName = /^[a-z0-9][a-z0-9_.-]{0,63}$/;

const isBase = (text: string): boolean => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return false;
  return !/[@?#]/.test(text) && !url.pathname.includes('/api/push');
};

const source = z.strictObject({
  /** File (mode 0600) with the push token, read at each push; `<data dir>/secrets/push/<monitor>` unless set. */
  tokenFile: z.string().min(1).optional(),
  /** The token in the secrets store instead, `<path>#<property>`. */
  secret: secretReference.optional(),
  /** Where the secrets store has the token that an agent writes to `tokenFile`; for `holdfast deploy ula --check`. */
  storedAs: secretReference.optional(),
});

/** The place of one monitor's token. */
export type TokenSource = z.output<typeof source>;

/** The address to connect to, apart from the URL's name: `10.0.0.8`, `10.0.0.8:3001` or `[fd00::8]:3001`. */
export function parseAddress(text: string): { readonly host: string; readonly port?: number } | undefined {
  const bare = text.replace(/^\[(.*)\]$/, '$1');
  if (isIP(bare) !== 0) return { host: bare };
  const { ip, port } = /^\[?(?<ip>[0-9a-fA-F.:]+)\]?:(?<port>\d{1,5})$/.exec(text)?.groups ?? {};
  if (ip === undefined || isIP(ip) === 0 || Number(port) < 1 || Number(port) > 65_535) return undefined;
  return { host: ip, port: Number(port) };
}

const fields = z.strictObject({
  /** Base of an uptime monitor with push monitors, e.g. `https://status.example.org`; the embedded one unless set. */
  url: z
    .string()
    .refine(
      isBase,
      'it must be the base of the monitor, e.g. http://uptime:3001, without a user, a query or the push path',
    )
    .optional(),
  /** Connects to this address instead of resolving the URL's name; the name is still sent and verified. */
  connect: z
    .string()
    .refine(
      (text) => parseAddress(text) !== undefined,
      'it must be an IP address, with or without a port, e.g. 10.0.0.8:443',
    )
    .optional(),
  /** PEM file with certificate authorities of the monitor, beside those that Node trusts. */
  caFile: z.string().min(1).optional(),
  /** Push tokens may go to another machine over `http://`. */
  insecure: insecureOption,
  /** Deadline of a push, milliseconds. */
  timeoutMs: z.int().min(100).max(60_000).default(10_000),
  /** Places of tokens by the monitor's name, when they are not the default. */
  monitors: z
    .record(
      z.string().regex(monitorName),
      source.refine(
        ({ tokenFile, secret }) => tokenFile === undefined || secret === undefined,
        'give tokenFile or secret, not both',
      ),
    )
    .default({}),
});

export const uptimeOptions = fields.superRefine(({ url, connect, insecure }, context) => {
  const connectTo = connect === undefined ? undefined : parseAddress(connect)?.host;
  refusePlaintext(context, { url, connectTo, insecure, credential: 'the push tokens' });
});

export type UptimeOptions = z.output<typeof uptimeOptions>;
