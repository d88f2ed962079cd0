/** Whether a certificate can be relied upon, for `holdfast doctor` and for the alert. */
import type { CertificateStatus } from '../http/certificate.ts';

const DAY_MS = 86_400_000;
/** What renews certificates does it well before: of one for 90 days, 30 before its end. */
const WARN_DAYS = 30;
const FAIL_DAYS = 7;
/** Those of a short life are renewed later: a quarter of it is left at least, and a twelfth is too little. */
const WARN_PART = 1 / 4;
const FAIL_PART = 1 / 12;

export interface CertificateVerdict {
  /** `warn`: it ends soon; `fail`: it ends within days, cannot be used now, or its files are not the ones in use. */
  readonly state: 'ok' | 'warn' | 'fail';
  /** For a person, without its surface. */
  readonly text: string;
}

/**
 * Judges what a surface serves: `warn` from 30 days before its end (a quarter of its life, where that is less), `fail` from
 * 7 days (a twelfth), when it is not valid now, and when its files cannot be used. Where clients need certificates, the end
 * of their authority counts as well.
 *
 * @param now epoch milliseconds
 */
export function judgeCertificate(
  { file, validFrom, validUntil, clientAuthority, problem }: CertificateStatus,
  now: number,
): CertificateVerdict {
  const [from, until] = [Date.parse(validFrom), Date.parse(validUntil)];
  if (until <= now) return { state: 'fail', text: `${file}: it ended on ${dayOf(validUntil)}` };
  if (from > now) return { state: 'fail', text: `${file}: it is valid only from ${dayOf(validFrom)}` };
  if (problem !== undefined) {
    const text = `${file}: the files are not used, the earlier pair is, until ${dayOf(validUntil)}: ${problem}`;
    return { state: 'fail', text };
  }
  if (clientAuthority && Date.parse(clientAuthority.validUntil) <= now) {
    const text = `${clientAuthority.file}: the authority of the clients ended on ${dayOf(clientAuthority.validUntil)}`;
    return { state: 'fail', text };
  }
  const own = {
    state: stateOf(until - now, until - from),
    text: `${file}: until ${lastsTill(validUntil, now)}`,
  };
  if (!clientAuthority) return own;
  const left = Date.parse(clientAuthority.validUntil) - now;
  const other = stateOf(left, Number.POSITIVE_INFINITY);
  const text = `${own.text}; ${clientAuthority.file}: until ${lastsTill(clientAuthority.validUntil, now)}`;
  return { state: worse(own.state, other), text };
}

function stateOf(leftMs: number, lifeMs: number): CertificateVerdict['state'] {
  if (leftMs < Math.min(FAIL_DAYS * DAY_MS, lifeMs * FAIL_PART)) return 'fail';
  return leftMs < Math.min(WARN_DAYS * DAY_MS, lifeMs * WARN_PART) ? 'warn' : 'ok';
}

function worse(one: CertificateVerdict['state'], other: CertificateVerdict['state']) {
  const order = ['ok', 'warn', 'fail'] as const;
  return order[Math.max(order.indexOf(one), order.indexOf(other))] ?? one;
}

const dayOf = (time: string): string => time.slice(0, 10);

function lastsTill(time: string, now: number): string {
  const days = Math.floor((Date.parse(time) - now) / DAY_MS);
  return `${dayOf(time)} (${days} ${days === 1 ? 'day' : 'days'})`;
}
