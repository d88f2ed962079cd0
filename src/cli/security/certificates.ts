import { resolve } from 'node:path';
import { type CertificateStatus, readKeyPair } from '../../core/host/http/certificate.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import type { Registrations } from '../../core/host/plugin/registrations.ts';

const DAY_MS = 86_400_000;
/** Certificates are normally renewed at least this long before they end. */
const WARN_DAYS = 14;

/**
 * What `holdfast doctor security` looks at of the certificates of surfaces: those that the running instance serves, and
 * those that the configuration names where none runs.
 */
export function certificateCheck({ surfaces }: Pick<Registrations, 'surfaces'>): CheckDefinition {
  return {
    name: 'security.certificates',
    run: ({ running }) => judgeCertificates(running ? served(running) : configured(surfaces), Date.now()),
  };
}

type Seen = readonly (readonly [surface: string, certificate: CertificateStatus])[];

function served({ surfaces }: NonNullable<CheckContext['running']>): Seen {
  return Object.entries(surfaces).flatMap(([name, { tls }]) => (tls ? [[name, tls] as const] : []));
}

function configured(surfaces: Registrations['surfaces']): Seen {
  return surfaces.flatMap(({ options: { name, tls, socket } }) => {
    if (!tls || socket) return [];
    const { fingerprint, validFrom, validUntil } = readKeyPair(name, tls);
    const times = {
      validFrom: new Date(validFrom).toISOString(),
      validUntil: new Date(validUntil).toISOString(),
    };
    return [[name, { file: resolve(tls.certFile), fingerprint, ...times }] as const];
  });
}

/**
 * Whether each certificate is valid now and for at least 14 days more, and whether the files as they are now are in use.
 *
 * @param now epoch milliseconds
 */
export function judgeCertificates(seen: Seen, now: number): CheckResult {
  const lookedAt =
    seen.length === 0
      ? 'the tls options of the surfaces'
      : `certificates of ${seen.map(([name]) => name).join(', ')}`;
  if (seen.length === 0)
    return { state: 'ok', lookedAt, found: 'no surface has a certificate, so none can end' };
  const judged = seen.map(([name, certificate]) => judge(name, certificate, now));
  const found = judged.map(({ text }) => text).join('; ');
  const state = judged.some((each) => each.state === 'fail')
    ? 'fail'
    : judged.some((each) => each.state === 'warn')
      ? 'warn'
      : 'ok';
  if (state === 'ok') return { state, lookedAt, found };
  const remedy = 'Look at what renews them. Renewed files are used within 10 s, without a restart.';
  return { state, lookedAt, found, remedy };
}

function judge(
  surface: string,
  { file, validFrom, validUntil, problem }: CertificateStatus,
  now: number,
): { readonly state: 'ok' | 'warn' | 'fail'; readonly text: string } {
  const until = Date.parse(validUntil);
  const day = (time: string) => time.slice(0, 10);
  const place = `${surface} (${file})`;
  if (until <= now) return { state: 'fail', text: `${place}: it ended on ${day(validUntil)}` };
  if (Date.parse(validFrom) > now)
    return { state: 'fail', text: `${place}: it is valid only from ${day(validFrom)}` };
  const days = Math.floor((until - now) / DAY_MS);
  if (problem !== undefined) {
    return {
      state: 'fail',
      text: `${place}: the files are not used, the earlier pair is, until ${day(validUntil)}: ${problem}`,
    };
  }
  return {
    state: days < WARN_DAYS ? 'warn' : 'ok',
    text: `${place}: until ${day(validUntil)} (${days} days)`,
  };
}
