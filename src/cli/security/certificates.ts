import { judgeCertificate } from '../../core/host/certificates/judge.ts';
import { type CertificateStatus, certificateStatus, readKeyPair } from '../../core/host/http/certificate.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import type { Registrations } from '../../core/host/plugin/registrations.ts';

type Declared = Pick<Registrations, 'surfaces' | 'listeners'>;

/**
 * What `holdfast doctor security` looks at of the certificates of surfaces and listeners: those that the running instance
 * serves, and those that the configuration names where none runs.
 */
export function certificateCheck(declared: Declared): CheckDefinition {
  return {
    name: 'security.certificates',
    run: ({ running }) => judgeCertificates(running ? served(running) : configured(declared), Date.now()),
  };
}

type Seen = readonly (readonly [surface: string, certificate: CertificateStatus])[];

function served({ surfaces }: NonNullable<CheckContext['running']>): Seen {
  return Object.entries(surfaces).flatMap(([name, { tls }]) => (tls ? [[name, tls] as const] : []));
}

function configured({ surfaces, listeners }: Declared): Seen {
  const named = [
    ...surfaces.map(({ options: { name, tls, socket } }) => ({ name, tls: socket ? undefined : tls })),
    ...listeners,
  ];
  return named.flatMap(({ name, tls }) =>
    tls ? [[name, certificateStatus(readKeyPair(name, tls), tls.certFile)] as const] : [],
  );
}

/**
 * Whether each certificate is valid now and for long enough, and whether the files as they are now are in use.
 *
 * @param now epoch milliseconds
 */
export function judgeCertificates(seen: Seen, now: number): CheckResult {
  if (seen.length === 0) {
    const found = 'no surface has a certificate, so none can end';
    return { state: 'ok', lookedAt: 'the tls options of the surfaces', found };
  }
  const lookedAt = `certificates of ${seen.map(([name]) => name).join(', ')}`;
  const judged = seen.map(([name, certificate]) => ({ name, ...judgeCertificate(certificate, now) }));
  const found = judged.map(({ name, text }) => `${name}: ${text}`).join('; ');
  const states = new Set(judged.map(({ state }) => state));
  const state = states.has('fail') ? 'fail' : states.has('warn') ? 'warn' : 'ok';
  if (state === 'ok') return { state, lookedAt, found };
  const remedy = 'Look at what renews them. Renewed files are used within 10 s, without a restart.';
  return { state, lookedAt, found, remedy };
}
