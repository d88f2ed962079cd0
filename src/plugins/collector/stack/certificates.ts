/** Expiry of certificates: those that a TLS endpoint serves, or those in a Secret. */
import { X509Certificate } from 'node:crypto';
import { connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls';
import type { KubernetesApi } from '../../../core/contracts/kubernetes.ts';
import { hostOf } from '../../../core/host/http/addresses.ts';
import type { CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { unknown, worst } from './unknown.ts';

const DAY_MS = 86_400_000;
/** Certificates are normally renewed at least this long before they expire. */
const WARN_DAYS = 14;
const CONNECT_MS = 5_000;
const LONGEST_CHAIN = 10;
const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Where certificates are. */
export interface Places {
  /** `host:port`. */
  readonly endpoints: readonly string[];
  readonly secrets: readonly { readonly namespace: string; readonly name: string }[];
}

interface Assessment {
  readonly state: CheckResult['state'];
  readonly text: string;
}

/**
 * Whether every certificate is valid, and for at least 14 days more.
 *
 * @param cluster undefined where none is configured
 * @param now epoch milliseconds
 */
export async function certificatesCheck(
  { endpoints, secrets }: Places,
  cluster: KubernetesApi | undefined,
  now: number,
  signal: AbortSignal,
): Promise<CheckResult> {
  const lookedAt = 'certificates of the stack';
  if (endpoints.length + secrets.length === 0) {
    return unknown(lookedAt, 'neither `tlsEndpoints` nor `stack.certificateSecrets` names any');
  }
  const seen = await Promise.all([
    ...endpoints.map((place) => ofPlace(place, () => servedBy(place, signal), now)),
    ...secrets.map(({ namespace, name }) =>
      ofPlace(`Secret ${namespace}/${name}`, () => inSecret(cluster, namespace, name, signal), now),
    ),
  ]);
  const state = worst(seen.map((each) => each.state));
  const found = seen.map(({ text }) => text).join('; ');
  if (state === 'ok') return { state, lookedAt, found };
  if (state === 'unknown') return unknown(lookedAt, found);
  return {
    state,
    lookedAt,
    found,
    remedy: 'Look at whoever renews them; the ingress proxy takes a renewed one without a restart.',
  };
}

async function ofPlace(
  place: string,
  read: () => Promise<readonly X509Certificate[]>,
  now: number,
): Promise<Assessment> {
  try {
    return assess(place, await read(), now);
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const why = isCoded(error) ? error.what : (code ?? message);
    return { state: 'unknown', text: `${place}: ${why}` };
  }
}

/** A chain ends with whichever of its certificates ends first. */
function assess(place: string, chain: readonly X509Certificate[], now: number): Assessment {
  if (chain.length === 0) return { state: 'unknown', text: `${place}: it has no certificate` };
  const until = Math.min(...chain.map(({ validToDate }) => validToDate.getTime()));
  const from = Math.max(...chain.map(({ validFromDate }) => validFromDate.getTime()));
  const day = (at: number): string => new Date(at).toISOString().slice(0, 10);
  if (until <= now) return { state: 'fail', text: `${place}: ended on ${day(until)}` };
  if (from > now) return { state: 'fail', text: `${place}: valid only from ${day(from)}` };
  const days = Math.floor((until - now) / DAY_MS);
  return { state: days < WARN_DAYS ? 'warn' : 'ok', text: `${place}: until ${day(until)} (${days} days)` };
}

function servedBy(place: string, signal: AbortSignal): Promise<X509Certificate[]> {
  const server = new URL(`tcp://${place}`);
  const { port } = server;
  const host = hostOf(server);
  return new Promise((resolve, reject) => {
    // The expiry is reported for certificates of an unknown authority, too.
    const servername = /^[\d.]+$|:/.test(host) ? undefined : host;
    const socket = connect({
      host,
      port: Number(port),
      rejectUnauthorized: false,
      ...(servername && { servername }),
    });
    const give = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    socket.setTimeout(CONNECT_MS, () => give(new Error(`no answer within ${CONNECT_MS / 1_000} s`)));
    signal.addEventListener('abort', () => give(new Error('the check was given up')), { once: true });
    socket.once('error', give);
    socket.once('secureConnect', () => {
      resolve(chainOf(socket));
      socket.destroy();
    });
  });
}

function chainOf(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let each: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (each?.raw !== undefined && chain.length < LONGEST_CHAIN) {
    chain.push(new X509Certificate(each.raw));
    // A root certificate is its own issuer.
    each = each.issuerCertificate === each ? undefined : each.issuerCertificate;
  }
  return chain;
}

async function inSecret(
  cluster: KubernetesApi | undefined,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<X509Certificate[]> {
  if (!cluster) throw new Error('no plugin provides a cluster');
  const secret = await cluster.get({ apiVersion: 'v1', kind: 'Secret' }, name, namespace, signal);
  if (!secret) throw new Error('there is no such Secret');
  const encoded = isObject(secret.data) ? secret.data['tls.crt'] : undefined;
  const text = typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString('utf8') : '';
  return (text.match(PEM) ?? []).map((pem) => new X509Certificate(pem));
}
